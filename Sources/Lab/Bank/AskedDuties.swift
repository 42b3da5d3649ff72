import CountersignSeal
import CountersignWire
import Synchronization

/// What a backend owes where a proxy asks our gateway, which sees no bodies and no answers: it compares each body with
/// the signed digest, and does once what comes twice under one `Idempotency-Key` of an account.
/// Source: Examples/decide/README.md.
final class AskedDuties: Sendable {
    private struct Wish: Hashable {
        var account: String
        var key: String
    }

    /// As many as the lab's victims have wishes; a real backend bounds them by time.
    private static let most = 100_000
    private let done = Mutex<[Wish: RawResponse]>([:])

    func answer(
        _ request: RawRequest, doing: () throws(StageFault) -> RawResponse
    ) throws(StageFault) -> RawResponse {
        guard AskedDuties.isVouchedFor(request) else {
            return RawResponse(400, json: ["reason": "the body is not the signed one"])
        }
        guard let key = request.fields["idempotency-key"], let account = request.fields["countersign-account"] else {
            return try doing()
        }
        let wish = Wish(account: account, key: key)
        if let before = done.withLock({ $0[wish] }) { return before }
        let response = try doing()
        done.withLock { if $0.count < AskedDuties.most { $0[wish] = response } }
        return response
    }

    /// An empty body needs nobody's word where none was signed.
    private static func isVouchedFor(_ request: RawRequest) -> Bool {
        guard request.fields["countersign-checked"] == "head; body=digest" else { return request.body.isEmpty }
        let digest = Base64.encode(SHA256.digest(request.body.span).span, .standard)
        return request.fields["content-digest"] == "sha-256=:\(digest):"
    }
}
