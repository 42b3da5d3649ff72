/// A fault of our own server that `countersign-breakable` can be started with, so that the lab and the tests
/// show that they detect it. Source: decision 0031.
package enum Sabotage: String, Sendable, CaseIterable {
    case nonceUnchecked = "nonce-unchecked"
    case nonceBeforeSignature = "nonce-before-signature"
    case pathFromHeader = "path-from-header"
    case macComparedByteByByte = "mac-compared-byte-by-byte"
    case replayInMemoryOnly = "replay-in-memory-only"
    case replayFailsOpen = "replay-fails-open"
    case jsonFirstWins = "json-first-wins"
    case hostUnchecked = "host-unchecked"
    case epochUnchecked = "epoch-unchecked"
    case bodyUnverified = "body-unverified"
    case tokenIsBearer = "token-is-bearer"
    case unknownAccountFast = "unknown-account-fast"
    case unknownAccountTold = "unknown-account-told"
    case guessesUnlimited = "guesses-unlimited"
    case retiredAccepted = "retired-accepted"
    case legacyAlwaysOn = "legacy-always-on"
    case onceForgotten = "once-forgotten"
    case identityFromClient = "identity-from-client"
    case keptInClear = "kept-in-clear"
    case acknowledgedBeforeCommit = "acknowledged-before-commit"
    case notifyLost = "notify-lost"
    case schemaExpanded = "schema-expanded"
    case schemaContracted = "schema-contracted"
}

extension Sabotage {
    /// What is wrong with a server that has this fault, in one sentence.
    package var meaning: String {
        switch self {
        case .nonceUnchecked: "a request is accepted however often it comes"
        case .nonceBeforeSignature: "a nonce is remembered before its signature was verified"
        case .pathFromHeader:
            "the path in X-Original-Path is verified, if a client sends one"
        case .macComparedByteByByte: "MACs are compared byte by byte, 4 ms for each equal byte"
        case .replayInMemoryOnly: "each start forgets the accepted requests"
        case .replayFailsOpen: "a request is accepted if the replay guard is unavailable"
        case .jsonFirstWins: "the first of equal auth-v4 members is verified, and all are forwarded"
        case .hostUnchecked: "requests that were signed for another host are accepted"
        case .epochUnchecked: "the keys of a session's earlier epochs stay valid"
        case .bodyUnverified: "a body is not compared with its signed digest"
        case .tokenIsBearer: "a session's token is enough, whatever its MAC"
        case .unknownAccountFast: "a login for an unknown account is refused without OPAQUE's work"
        case .unknownAccountTold: "a login for an unknown account has another response"
        case .guessesUnlimited: "the number of password guesses is not limited"
        case .retiredAccepted: "a retired release is accepted"
        case .legacyAlwaysOn: "a release's secret is accepted under any scheme"
        case .onceForgotten: "a keyed request is forwarded again for each later copy"
        case .identityFromClient:
            "Countersign-* fields of a client replace ours"
        case .keptInClear: "session roots are stored unsealed"
        case .acknowledgedBeforeCommit: "a change of sessions is acknowledged before it is committed"
        case .notifyLost: "a node does not get the notifications of a PostgreSQL store"
        case .schemaExpanded: "a later build with an expanding migration"
        case .schemaContracted: "the build after that, with a contracting migration"
        }
    }
}
