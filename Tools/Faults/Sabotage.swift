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
            "the path that is verified is the one that X-Original-Path says, where a client sends that"
        case .macComparedByteByByte: "MACs are compared byte by byte, with 4 ms for each byte that fits"
        case .replayInMemoryOnly: "what was seen is forgotten at each start"
        case .replayFailsOpen: "what the replay guard cannot vouch for is accepted"
        case .jsonFirstWins: "of auth-v4 members of one name the first is verified, and all are forwarded"
        case .hostUnchecked: "requests that were signed for another host are accepted"
        case .epochUnchecked: "the keys of a session's earlier epochs are good for ever"
        case .bodyUnverified: "a body is not compared with its signed digest"
        case .tokenIsBearer: "a session's token counts, whatever MAC comes with it"
        case .unknownAccountFast: "a login of a name without an account is answered at once"
        case .unknownAccountTold: "a login of a name without an account has another answer"
        case .guessesUnlimited: "the number of password guesses is not limited"
        case .retiredAccepted: "a retired release is let in"
        case .legacyAlwaysOn: "any scheme is accepted with a release's secret, whatever the policy names"
        case .onceForgotten: "a keyed request is forwarded again for each later copy"
        case .identityFromClient:
            "Countersign-* fields that a client sends reach the backend in the place of ours"
        case .keptInClear: "session roots are stored as they are"
        case .acknowledgedBeforeCommit: "a change of sessions is acknowledged before it is committed"
        case .notifyLost: "a node does not get the notifications of a PostgreSQL store"
        case .schemaExpanded: "a later build, whose migration is an expanding one"
        case .schemaContracted: "a build after that, whose migration is a contracting one"
        }
    }
}
