// The parsers of session requests and refreshes that run before authentication.
import CountersignHandshake
import CountersignSchemes
import CountersignWire

@testable import CountersignServer

/// A token: an accepted one is in canonical form, and its parts reproduce it.
@Sendable func fuzzToken(_ bytes: Span<UInt8>) {
    let token = SessionToken(bytes)
    if let token {
        precondition(SessionToken.begins(bytes), "a token that does not begin as one")
        precondition(Array(token.description.utf8).span.matches(bytes), "a token with two spellings")
        precondition(SessionToken(token.description) == token && SessionID(token.id.description) == token.id)
        let keyID = KeyID(token)
        precondition(keyID.bytes.matches(bytes))
        let scope = keyID.prefix(SessionToken.sessionLength)
        precondition(scope.bytes.count == SessionToken.sessionLength && SessionToken(scope.bytes) == nil)
    }
    if let keyID = KeyID(bytes) {
        let other = Array(keyID.description.utf8)
        precondition(SessionToken(other.span) == token, "a key id reads as another token")
    }
}

/// A refresh's body, with the members that the route reads: a part of another length than required is
/// refused.
@Sendable func fuzzRefresh(_ bytes: Span<UInt8>) {
    let body = bytes.withUnsafeBufferPointer { Array($0) }
    guard let sent = try? TokenRoutes.TokenExchange(body) else { return }
    precondition(
        sent.attempt.count == RefreshTranscript.attemptCount && sent.mac.count == 32
            && sent.signature.count == 64)
    precondition(sent.time >= 0)
    let transcript = RefreshTranscript(
        app: "a", release: "r", token: sent.token, attempt: sent.attempt, time: sent.time,
        counter: sent.counter, nonce: sent.nonce, purpose: sent.purpose)
    precondition((1...(1 << 53)).contains(sent.counter))
    let purpose = sent.purpose.rawValue.utf8.count
    precondition(transcript.bytes.count == 24 + 9 * 8 + 1 + 1 + 16 + 16 + 16 + purpose)
}
