import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignWire

/// The right to send one upload later and without a signature, by any HTTP stack: for transfers that continue
/// while the app does not run. ``CountersignClient/uploadTicket(for:expiresIn:)`` requests one.
///
/// It admits exactly one request: this method, URL and body, once, before it expires, while the session that
/// requested it lives. A party that has the fields can send that request; they are a secret, which
/// ``description`` does not show.
public struct UploadTicket: Sendable, CustomStringConvertible, CustomReflectable {
    /// The method of the upload.
    public let method: APIMethod
    /// The whole URL, percent-encoded, as the ticket is bound to it.
    public let url: String
    /// The fields to send with the upload, including the ticket. `Host` and `Content-Length` follow from the
    /// URL and the body; the app may add other fields, which do not reach the backend.
    public let fields: [HeaderField]
    /// Bytes of the body; the server refuses another length.
    public let length: Int
    /// When the ticket expires: whole Unix seconds.
    public let expires: Int64

    /// Without the ticket itself.
    public var description: String { "upload ticket for \(method) \(url), \(length) bytes, until \(expires)" }

    /// The same, for debuggers.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension CountersignClient {
    /// Requests, in the name of the signed-in account, the right to send `request` later and without a
    /// signature: for background transfers, which continue after the app has ended, when no signature is
    /// fresh any more.
    ///
    /// The client reads the body once for its digest; the caller sends it with ``UploadTicket/fields``. The
    /// server must allow it (policy `upload-tickets`, and `upload-ticket-max` for the longest time). A route
    /// that asks for the device's signature gives no tickets.
    /// - Parameters:
    ///   - request: PUT, POST or PATCH, with its body; of fields at most `Content-Type`, which is bound, too.
    ///   - time: how long the ticket lives; a day at most.
    public func uploadTicket(
        for request: APIRequest, expiresIn time: Duration = .seconds(3_600)
    ) async throws(CountersignError) -> UploadTicket {
        try await core.passGate()
        // Reading a long body takes time, during which another account may sign in.
        let owner = CallOwner()
        try await core.resolve(owner, for: request.caller)
        guard request.caller == .account else {
            throw .misuse("upload ticket: a session asks for it, and not the app alone")
        }
        guard [APIMethod.put, .post, .patch].contains(request.method) else {
            throw .misuse("upload ticket: expected PUT, POST or PATCH")
        }
        guard request.fields.allSatisfy({ $0.name.lowercased() == "content-type" }), request.fields.count <= 1
        else {
            throw .misuse(
                "upload ticket: expected no field but one Content-Type, for no other goes to the backend")
        }
        guard (1...86_400).contains(time.components.seconds) else {
            throw .misuse("upload ticket: expected a time from a second to a day")
        }
        let target = try core.base.target(request.path)
        let body = try await PreparedBody(request.body)
        let upload = UploadTickets.Upload(
            method: request.method.description, target: target,
            contentType: request.value(of: "content-type"),
            length: body.length, sha256: body.sha256)
        let issued = try await core.run(signer: signer) {
            (installation, environment) async throws(ClientOperationError) in
            try await UploadTickets(installation, environment: environment).issue(
                for: upload, as: owner.signing, lifetime: time.components.seconds)
        }
        return UploadTicket(
            method: request.method, url: core.base.origin.description + target,
            fields: request.fields + [HeaderField("Countersign-Ticket", value: issued.ticket)],
            length: body.length,
            expires: issued.expires)
    }
}

extension PreparedBody {
    /// The digest of the body; without a body that of no bytes.
    fileprivate var sha256: [UInt8] {
        if case .sha256(let digest) = digest { return digest }
        guard case .bytes(let bytes) = body else { return PreparedBody.sha256(of: []) }
        return PreparedBody.sha256(of: bytes)
    }

    private static func sha256(of bytes: [UInt8]) -> [UInt8] {
        let digest = SHA256.digest(bytes.span)
        return digest.indices.map { digest[$0] }
    }
}
