<?php
// A backend behind the gateway: answers only what the gateway vouches for.
//
//   COUNTERSIGN_JWKS=https://api.example.com/countersign/v1/jwks COUNTERSIGN_ISSUER=https://api.example.com/countersign/v1 \
//   COUNTERSIGN_AUDIENCE=http://127.0.0.1:9000 php -d enable_post_data_reading=Off -S 127.0.0.1:9000 index.php
declare(strict_types=1);

require __DIR__ . '/verify.php';

/** The keys, kept in a file of this user's own for as long as their Cache-Control says. */
function jwks(): array
{
    $folder = getenv('COUNTERSIGN_CACHE') ?: sys_get_temp_dir() . '/countersign-' . posix_geteuid();
    if (!is_dir($folder)) mkdir($folder, 0700, true);
    if (fileowner($folder) !== posix_geteuid() || (fileperms($folder) & 022)) throw new RuntimeException("$folder: others may write there");
    $kept = $folder . '/' . hash('sha256', getenv('COUNTERSIGN_JWKS')) . '.json';
    if (!is_file($kept) || time() - filemtime($kept) >= 300) {
        $text = file_get_contents(getenv('COUNTERSIGN_JWKS'));
        if ($text === false) throw new RuntimeException('the keys could not be fetched');
        file_put_contents("$kept." . getmypid(), $text);
        rename("$kept." . getmypid(), $kept);
    }
    return json_decode(file_get_contents($kept), true, flags: JSON_THROW_ON_ERROR);
}

header('Content-Type: application/json');
try {
    $claims = Countersign\verify_assertion($_SERVER['HTTP_COUNTERSIGN_ASSERTION'] ?? null, jwks(), [
        'issuer' => getenv('COUNTERSIGN_ISSUER'), 'audience' => getenv('COUNTERSIGN_AUDIENCE'),
        'method' => $_SERVER['REQUEST_METHOD'], 'target' => $_SERVER['REQUEST_URI'],
        'body' => file_get_contents('php://input'),
    ]);
    echo json_encode(['app' => $claims['app'], 'release' => $claims['release'], 'event' => $claims['jti'],
        'account' => $claims['sub'] ?? null, 'user_id' => Countersign\user_id($claims), 'client' => $claims['client'] ?? null]);
} catch (Countersign\Refused $refused) {
    http_response_code(401);
    echo json_encode(['refused' => $refused->getMessage()]);
} catch (Throwable $error) {
    error_log((string) $error);
    http_response_code(503);
    echo json_encode(['refused' => 'keys-unavailable']);
}
