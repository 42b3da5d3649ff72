import CountersignMemory
import CountersignSeal
import CountersignWire

/// The bank as a backend behind our gateway: plain HTTP on loopback. It checks nothing itself, as backends
/// behind a gateway do.
///
/// The gateway names the account in `Countersign-Account`. Under schemes that identify an app and no user,
/// this field is missing, and the app names the account in the parameter `user`. Source: docs/protocol.md,
/// "To the upstream".
package final class BankUpstream: Sendable {
    /// The component that forwards requests to the bank.
    package enum Front: Sendable {
        /// Our gateway, which has checked the body and handles idempotency keys.
        case gateway
        /// A proxy that asks our gateway: the bank does the checks that need the body or the response.
        case askingProxy
    }

    private let server: LocalServer

    /// Starts to listen.
    package init(_ bank: Bank, front: Front = .gateway) throws(LabError) {
        let asked = front == .askingProxy ? DecideBackendChecks() : nil
        server = try LocalServer { request throws(LabError) in
            guard let asked else { return try BankUpstream.respond(to: request, at: bank) }
            return try asked.answer(request) { () throws(LabError) in
                try BankUpstream.respond(to: request, at: bank)
            }
        }
    }

    /// The port on 127.0.0.1.
    package var port: UInt16 { server.port }

    package func stop() { server.stop() }

    private static func respond(to request: RawRequest, at bank: Bank) throws(LabError) -> RawResponse {
        let parameters = LenientParameters(request)
        guard let holder = try accountHolder(for: request, parameters: parameters, at: bank) else {
            return RawResponse(401, json: ["reason": "whose request this is was not said"])
        }
        return try BankRoutes.respond(to: request, parameters: parameters, for: holder, at: bank)
    }

    private static func accountHolder(
        for request: RawRequest, parameters: LenientParameters, at bank: Bank
    ) throws(LabError) -> String? {
        guard let account = request.fields["countersign-account"] else { return parameters["user"] }
        return try bank.holder(account)
    }
}

/// The checks that a backend needs where a proxy asks our gateway, which sees no bodies and no responses: it
/// compares each body with the signed digest, and carries out requests with the same `Idempotency-Key` of one
/// account once. Source: Examples/decide/README.md.
final class DecideBackendChecks: Sendable {
    private struct IdempotencyID: Hashable {
        var account: String
        var key: String
    }

    /// Enough for the keys of the lab's victims; a real backend limits them by age.
    private static let most = 100_000
    private let done = Locked<[IdempotencyID: RawResponse]>([:])

    func answer(
        _ request: RawRequest, doing: () throws(LabError) -> RawResponse
    ) throws(LabError) -> RawResponse {
        guard DecideBackendChecks.isVouchedFor(request) else {
            return RawResponse(400, json: ["reason": "the body is not the signed one"])
        }
        guard let key = request.fields["idempotency-key"], let account = request.fields["countersign-account"]
        else {
            return try doing()
        }
        let wish = IdempotencyID(account: account, key: key)
        if let before = done.with({ $0[wish] }) { return before }
        let response = try doing()
        done.with { if $0.count < DecideBackendChecks.most { $0[wish] = response } }
        return response
    }

    /// An empty body without a signed digest is accepted.
    private static func isVouchedFor(_ request: RawRequest) -> Bool {
        guard request.fields["countersign-checked"] == "head; body=digest" else {
            return request.body.isEmpty
        }
        let digest = Base64.encode(SHA256.digest(request.body.span).span, as: .standard)
        return request.fields["content-digest"] == "sha-256=:\(digest):"
    }
}
