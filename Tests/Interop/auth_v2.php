<?php
// auth-v2 as servers and clients in the field have it, in PHP alone.
//
// php auth_v2.php verify SECRET METHOD TARGET [FORM]     prints `accepted` or `refused`
// php auth_v2.php sign SECRET METHOD PATH FORM CLIENT_ID  prints the signed form

/** Method, path and the parameters that are not in auth_, sorted, joined, and decoded once after joining. */
function string_to_sign(string $method, string $path, array $parameters): string
{
    uksort($parameters, 'strcmp');
    $pairs = [];
    foreach ($parameters as $name => $value) {
        if (strncmp((string) $name, 'auth_', 5) === 0) {
            continue;
        }
        foreach ((array) $value as $one) {
            $pairs[] = $name . (is_array($value) ? '[]' : '') . '=' . $one;
        }
    }
    return $method . "\n" . urldecode($path) . "\n" . urldecode(implode('&', $pairs));
}

[, $action, $secret, $method, $target] = $argv;
[$path, $query] = explode('?', $target, 2) + [1 => ''];
parse_str($argv[5] ?? $query, $parameters);

if ($action === 'sign') {
    $parameters['auth_client_id'] = $argv[6];
    $parameters['auth_timestamp'] = (string) time();
    $parameters['auth_version'] = '2';
    $parameters['auth_signature'] = hash_hmac('sha256', string_to_sign($method, $path, $parameters), $secret);
    echo http_build_query($parameters);
    exit(0);
}
$expected = hash_hmac('sha256', string_to_sign($method, $path, $parameters), $secret);
$isFresh = abs(time() - (int) ($parameters['auth_timestamp'] ?? 0)) < 12 * 3600;
$isGood = $isFresh && ($parameters['auth_version'] ?? '') === '2'
    && hash_equals($expected, $parameters['auth_signature'] ?? '');
echo $isGood ? 'accepted' : 'refused';
exit($isGood ? 0 : 1);
