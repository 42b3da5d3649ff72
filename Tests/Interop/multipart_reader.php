<?php
// What PHP makes of a multipart body, for test_multipart_readings.py: its fields, the names of its files,
// and the names that the gateway says nothing signs.
$fields = [];
foreach ($_POST as $name => $value) {
    $fields[$name] = is_array($value) ? 'array' : bin2hex($value);
}
header('Content-Type: application/json');
$unsigned = explode(', ', $_SERVER['HTTP_COUNTERSIGN_UNSIGNED_PARTS'] ?? '');
echo json_encode([
    'fields' => (object) $fields, 'files' => array_map('strval', array_keys($_FILES)),
    'unsigned' => array_values(array_filter($unsigned)),
]);
