// A backend behind the gateway: answers only what the gateway vouches for.
//
//   COUNTERSIGN_JWKS=https://api.example.com/countersign/v1/jwks COUNTERSIGN_ISSUER=https://api.example.com/countersign/v1 \
//   COUNTERSIGN_AUDIENCE=http://127.0.0.1:9000 node server.mjs 9000
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { Refused, userId, verifyAssertion } from './verify.mjs'

const { COUNTERSIGN_JWKS: source, COUNTERSIGN_ISSUER: issuer, COUNTERSIGN_AUDIENCE: audience } = process.env
const KEPT = 300_000 // milliseconds that a list of keys may be used for, as its Cache-Control says
const BETWEEN = 10_000 // milliseconds between two fetches that unknown key ids can cause

let jwks = { keys: [] }
let fetched = -Infinity
async function keysKnowing(kid) {
  const age = performance.now() - fetched
  if (age > KEPT || (age > BETWEEN && !jwks.keys.some((key) => key.kid === kid))) {
    jwks = await load()
    fetched = performance.now()
  }
  return jwks
}

async function load() {
  if (!/^https?:/.test(source)) return JSON.parse(await readFile(source, 'utf8'))
  const answer = await fetch(source)
  if (!answer.ok) throw new Error(`${source}: ${answer.status}`)
  return answer.json()
}

/** The key id that a token names, to look for; nothing is believed before it is verified. */
function kidOf(token) {
  try { return JSON.parse(Buffer.from(token.split('.')[0], 'base64url').toString()).kid } catch { return undefined }
}

createServer(async (request, response) => {
  const parts = []
  for await (const part of request) parts.push(part)
  const token = request.headers['countersign-assertion']
  const answer = (status, value) => response.writeHead(status, { 'Content-Type': 'application/json' })
    .end(request.method === 'HEAD' ? undefined : JSON.stringify(value))
  try {
    const claims = verifyAssertion(token, await keysKnowing(kidOf(token)),
      { issuer, audience, method: request.method, target: request.url, body: Buffer.concat(parts) })
    answer(200, { app: claims.app, release: claims.release, event: claims.jti, account: claims.sub ?? null,
      user_id: userId(claims) === null ? null : Number(userId(claims)), client: claims.client })
  } catch (error) {
    if (error instanceof Refused) return answer(401, { refused: error.message })
    console.error(error)
    answer(503, { refused: 'keys-unavailable' })
  }
}).listen(Number(process.argv[2]), '127.0.0.1', function () { console.log(`listening on ${this.address().port}`) })
