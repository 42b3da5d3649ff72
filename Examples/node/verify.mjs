// Verifies `Countersign-Assertion`, which the gateway sends with each request it forwards (docs/protocol.md, "The
// assertion"). Nothing but Node's own modules (18 or later). Tested against a running gateway: Tests/Interop/test_assertion.py.
import { createHash, createPublicKey, timingSafeEqual, verify } from 'node:crypto'

/** Thrown for every assertion that does not hold; `message` is a stable word. */
export class Refused extends Error {}

const LONGEST_LIFE = 60 // seconds
const CLOCK_LEEWAY = 5 // seconds that this machine's clock may differ from the gateway's

const refuse = (reason) => { throw new Refused(reason) }
const fromBase64url = (text) => Buffer.from(text, 'base64url')
function object(part) {
  let value
  try { value = JSON.parse(fromBase64url(part).toString('utf8')) } catch { refuse('malformed') }
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : refuse('malformed')
}

/**
 * The claims of an assertion that holds for this request.
 * @param {string|undefined} token the field's value
 * @param {{keys: object[]}} jwks what the gateway's `jwks` route answers
 * @param {object} expected `issuer`, `audience`: as configured; `method`, `target` (raw, with its query), `body`
 *   (Buffer): as received; `openBody: 'accepted'` also takes bodies that no digest vouches for; `now`: Unix seconds.
 */
export function verifyAssertion(token, jwks, expected) {
  const now = expected.now ?? Math.floor(Date.now() / 1000)
  if (typeof token !== 'string' || token.length > 16384 || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) refuse('malformed')
  const [head, payload, signature] = token.split('.')

  // The algorithm is ours to name, never the token's: otherwise `none`, or HS256 under the public key, would pass.
  const header = object(head)
  if (header.alg !== 'EdDSA' || 'crit' in header) refuse('algorithm')
  if (header.typ !== 'countersign-assertion+jwt') refuse('type')
  const isMeant = (key) => key.kid === header.kid && key.kty === 'OKP' && key.crv === 'Ed25519'
  const key = typeof header.kid === 'string' && jwks.keys.find(isMeant)
  if (!key) refuse('unknown-key')
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key.x }, format: 'jwk' })
  if (!verify(null, Buffer.from(`${head}.${payload}`), publicKey, fromBase64url(signature))) refuse('signature')

  const claims = object(payload)
  if (claims.iss !== expected.issuer) refuse('issuer')
  if (claims.aud !== expected.audience) refuse('audience')
  if (!Number.isSafeInteger(claims.iat) || !Number.isSafeInteger(claims.exp)) refuse('malformed')
  if (claims.iat > now + CLOCK_LEEWAY) refuse('not-yet')
  if (claims.exp - claims.iat > LONGEST_LIFE || now >= claims.exp + CLOCK_LEEWAY) refuse('expired')
  if (claims.htm !== expected.method) refuse('method')
  if (claims.htu !== expected.target) refuse('target')
  // Account, session and client address: a claim that is present and no text is malformed, not absent.
  for (const name of ['sub', 'sid', 'client']) if (name in claims && typeof claims[name] !== 'string') refuse('malformed')
  // `id:` and the backend's own number, or `name:` and a chosen name. Never cast it: parse it by userId().
  if ('sub' in claims && !/^(id:[1-9][0-9]{0,18}|name:[!-~]+)$/.test(claims.sub)) refuse('malformed')
  checkBody(claims, expected)
  return claims
}

/** The number that this backend assigned to the account, as a string; null without an account or a number. */
export function userId(claims) {
  return claims.sub?.startsWith('id:') ? claims.sub.slice(3) : null
}

function checkBody(claims, expected) {
  const digests = [['sha256', claims.body_sha256], ['sha512', claims.body_sha512]].filter(([, text]) => text !== undefined)
  if (digests.length === 0 && expected.openBody !== 'accepted') refuse('body-open')
  for (const [algorithm, text] of digests) {
    const found = createHash(algorithm).update(expected.body).digest()
    const said = typeof text === 'string' ? fromBase64url(text) : Buffer.alloc(0)
    if (said.length !== found.length || !timingSafeEqual(said, found)) refuse('body')
  }
}
