<?php
// Verifies `Countersign-Assertion`, which the gateway sends with each request it forwards (docs/protocol.md, "The
// assertion"). Nothing but PHP's own sodium extension (8.1 or later). Tested against a running gateway:
// Tests/Interop/test_assertion.py.
declare(strict_types=1);

namespace Countersign;

/** Thrown for every assertion that does not hold; the message is a stable word. */
final class Refused extends \Exception {}

const LONGEST_LIFE = 60; // seconds
const CLOCK_LEEWAY = 5; // seconds that this machine's clock may differ from the gateway's

/**
 * The claims of an assertion that holds for this request.
 *
 * @param ?string $token the field's value
 * @param array $jwks what the gateway's `jwks` route answers, decoded
 * @param array $expected `issuer`, `audience`: as configured; `method`, `target` (raw, with its query), `body`: as
 *     received; `open_body` => 'accepted' also takes bodies that no digest vouches for; `now`: Unix seconds
 * @throws Refused
 */
function verify_assertion(?string $token, array $jwks, array $expected): array
{
    $now = $expected['now'] ?? time();
    if ($token === null || strlen($token) > 16384 || !preg_match('/\A[\w-]+\.[\w-]+\.[\w-]+\z/', $token)) {
        throw new Refused('malformed');
    }
    [$head, $payload, $signature] = explode('.', $token);

    // The algorithm is ours to name, never the token's: otherwise `none`, or HS256 under the public key, would pass.
    $header = json_object($head);
    if (($header['alg'] ?? null) !== 'EdDSA' || array_key_exists('crit', $header)) throw new Refused('algorithm');
    if (($header['typ'] ?? null) !== 'countersign-assertion+jwt') throw new Refused('type');
    $isMeant = fn (array $key) => ($key['kid'] ?? null) === ($header['kid'] ?? '')
        && ($key['kty'] ?? null) === 'OKP' && ($key['crv'] ?? null) === 'Ed25519';
    $key = array_values(array_filter($jwks['keys'] ?? [], $isMeant))[0] ?? throw new Refused('unknown-key');
    $bytes = from_base64url($signature);
    if (strlen($bytes) !== SODIUM_CRYPTO_SIGN_BYTES
        || !sodium_crypto_sign_verify_detached($bytes, "$head.$payload", from_base64url($key['x']))) {
        throw new Refused('signature');
    }

    $claims = json_object($payload);
    if (($claims['iss'] ?? null) !== $expected['issuer']) throw new Refused('issuer');
    if (($claims['aud'] ?? null) !== $expected['audience']) throw new Refused('audience');
    [$iat, $exp] = [$claims['iat'] ?? null, $claims['exp'] ?? null];
    if (!is_int($iat) || !is_int($exp)) throw new Refused('malformed');
    if ($iat > $now + CLOCK_LEEWAY) throw new Refused('not-yet');
    if ($exp - $iat > LONGEST_LIFE || $now >= $exp + CLOCK_LEEWAY) throw new Refused('expired');
    if (($claims['htm'] ?? null) !== $expected['method']) throw new Refused('method');
    if (($claims['htu'] ?? null) !== $expected['target']) throw new Refused('target');
    // Account, session and client address: a claim that is present and no text is malformed, not absent.
    foreach (['sub', 'sid', 'client'] as $name) {
        if (array_key_exists($name, $claims) && !is_string($claims[$name])) throw new Refused('malformed');
    }
    // `id:` and the backend's own number, or `name:` and a chosen name. Never cast it: parse it by user_id().
    if (!preg_match('/\A(id:[1-9][0-9]{0,18}|name:[!-~]+)\z/', $claims['sub'] ?? 'name:none')) throw new Refused('malformed');
    check_body($claims, $expected);
    return $claims;
}

/** The number that this backend assigned to the account; null without an account or a number. */
function user_id(array $claims): ?int
{
    return str_starts_with($claims['sub'] ?? '', 'id:') ? (int) substr($claims['sub'], 3) : null;
}

function check_body(array $claims, array $expected): void
{
    $digests = array_intersect_key($claims, ['body_sha256' => 0, 'body_sha512' => 0]);
    if (!$digests && ($expected['open_body'] ?? null) !== 'accepted') throw new Refused('body-open');
    foreach ($digests as $name => $text) {
        $found = hash(substr($name, 5), $expected['body'], binary: true);
        if (!is_string($text) || !hash_equals($found, from_base64url($text))) throw new Refused('body');
    }
}

function from_base64url(string $text): string
{
    try {
        return sodium_base642bin($text, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING);
    } catch (\SodiumException) {
        throw new Refused('malformed');
    }
}

function json_object(string $part): array
{
    $value = json_decode(from_base64url($part));
    return $value instanceof \stdClass ? (array) $value : throw new Refused('malformed');
}
