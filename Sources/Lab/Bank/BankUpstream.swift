import CountersignWire

/// The bank as a backend behind our gateway: plain HTTP on loopback. It checks nothing itself, as backends behind a gateway do.
///
/// Whose request it is the gateway says in `Countersign-Account`; under the schemes that know an app and no user, where there is no such
/// field, the app itself says so in the parameter `user`. Source: docs/protocol.md, "To the upstream".
package final class BankUpstream: Sendable {
    /// Who passes requests on to it.
    package enum Front: Sendable {
        /// Our gateway, which has seen the body and knows the client's wishes apart.
        case gateway
        /// A proxy that asks our gateway: what that cannot do, the bank does.
        case asked
    }

    private let server: LocalServer

    /// Listens from now on.
    package init(_ bank: Bank, _ front: Front = .gateway) throws(StageFault) {
        let asked = front == .asked ? AskedDuties() : nil
        server = try LocalServer { request throws(StageFault) in
            guard let asked else { return try BankUpstream.answer(request, bank) }
            return try asked.answer(request) { () throws(StageFault) in try BankUpstream.answer(request, bank) }
        }
    }

    /// On 127.0.0.1.
    package var port: UInt16 { server.port }

    package func stop() { server.stop() }

    private static func answer(_ request: RawRequest, _ bank: Bank) throws(StageFault) -> RawResponse {
        let parameters = FieldParameters(request)
        guard let holder = try holder(request, parameters, bank) else {
            return RawResponse(401, json: ["reason": "whose request this is was not said"])
        }
        return try BankRoutes.answer(request, parameters, for: holder, at: bank)
    }

    private static func holder(
        _ request: RawRequest, _ parameters: FieldParameters, _ bank: Bank
    ) throws(StageFault) -> String? {
        guard let account = request.fields["countersign-account"] else { return parameters["user"] }
        // All digits is a user id: the gateway escapes a digit of a name that looks like one.
        if let userID = Int64(account) { return try bank.holder(userID) }
        let bytes = Array(account.utf8)
        return String(decoding: Form.forgivinglyDecoded(bytes.span), as: UTF8.self)
    }
}
