import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignWire

extension CountersignClient {
    /// Asks, in the name of who is signed in, for the right to send `request` later and without a
    /// signature: for background transfers, which go on when the app has ended and no signature would be
    /// fresh any more.
    ///
    /// The body is read once for its digest, and is the caller's to send, with
    /// ``UploadTicket/fields``. The server must allow it (policy `upload-tickets`, and
    /// `upload-ticket-max` for the longest time). A route that asks for the device's signature gives none.
    /// - Parameters:
    ///   - request: PUT, POST or PATCH, with its body; of fields at most `Content-Type`, which is bound, too.
    ///   - time: how long the ticket lives; a day at most.
    public func uploadTicket(
        for request: APIRequest, expiresIn time: Duration = .seconds(3_600)
    ) async throws(CountersignError) -> UploadTicket {
        try await core.passGate()
        // Reading a long body takes its time, in which somebody else may sign in.
        let owner = CallOwner()
        try await core.settle(owner, for: request.caller)
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
        let issued = try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            try await UploadTickets(installation, way).issue(
                for: upload, as: owner.signing, lifetime: time.components.seconds)
        }
        return UploadTicket(
            method: request.method, url: core.base.origin.description + target,
            fields: request.fields + [HeaderField("Countersign-Ticket", issued.ticket)], length: body.length,
            expires: issued.expires)
    }
}

extension PreparedBody {
    /// Of what is sent: of no body that of no bytes.
    fileprivate var sha256: [UInt8] {
        if let digest { return digest }
        guard case .bytes(let bytes) = body else { return PreparedBody.sha256(of: []) }
        return PreparedBody.sha256(of: bytes)
    }

    private static func sha256(of bytes: [UInt8]) -> [UInt8] {
        let digest = SHA256.digest(bytes.span)
        return digest.indices.map { digest[$0] }
    }
}
