import CountersignWire

/// Tickets for uploads that are sent later and without a signature. Source: docs/protocol.md, "Upload
/// tickets".
package struct UploadTickets: Sendable {
    private let routes: AuthenticatedRoutes

    package init(_ installation: Installation, environment: ClientEnvironment) {
        routes = AuthenticatedRoutes(installation: installation, environment: environment)
    }

    /// The one request that the ticket is for.
    package struct Upload: Sendable {
        package var method: String
        package var target: String
        package var contentType: String?
        /// Bytes of the body.
        package var length: Int
        /// SHA-256 of the body, 32 bytes.
        package var sha256: [UInt8]

        package init(method: String, target: String, contentType: String?, length: Int, sha256: [UInt8]) {
            self.method = method
            self.target = target
            self.contentType = contentType
            self.length = length
            self.sha256 = sha256
        }
    }

    package struct Issued: Sendable {
        /// A secret.
        package let ticket: String
        /// Whole Unix seconds.
        package let expires: Int64
    }

    /// Asks for a ticket that lives for `seconds`, in the name of `owner`.
    package func issue(
        for upload: Upload, as owner: SignedCalls.Owner, lifetime seconds: Int64
    ) async throws(ClientOperationError) -> Issued {
        var members: [(name: String, value: JSONValue)] = [
            ("method", .string(upload.method)), ("target", .string(upload.target)),
            ("content_digest", .string("sha-256=:\(Base64.encode(upload.sha256.span, as: .standard)):")),
            ("length", .integer(Int64(upload.length))), ("expires_in", .integer(seconds)),
        ]
        if let type = upload.contentType { members.append(("content_type", .string(type))) }
        let answer = try await routes.send("POST", path: "/uploads", body: .object(members), as: owner)
        let ticket = try answer.text("ticket")
        let isPlain = ticket.utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == 0x5F || $0 == 0x2D
        }
        guard isPlain, ticket.hasPrefix("u_") else {
            throw answer.missing("ticket", expected: "an upload ticket")
        }
        return Issued(ticket: ticket, expires: try answer.number("expires"))
    }
}
