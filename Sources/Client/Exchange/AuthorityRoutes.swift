import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Calls of the authority's own routes, signed by the release.
struct AuthorityRoutes: Sendable {
    let installation: Installation
    let environment: ClientEnvironment

    /// The proof that a response comes from the authority.
    enum RequiredProof {
        /// The authority's signature. Without its key, no success is accepted.
        case authoritySignature
        /// The authority's signature if its key is known. Otherwise an unsigned success is accepted; the
        /// protocol step that uses it proves it.
        case authoritySignatureIfKeyKnown
        /// A signature with the authority's key, or with a key that the response's own content names and only
        /// the authority can have.
        case signature(by: (Response) -> [KeyID: SigningKey])
    }

    /// Returns a success that meets `proof`. If a refusal says `stale` and the authority's time, repeats the
    /// request once with that time; `body` makes the content anew, since a proof in it may contain the time.
    func post(
        to path: String, requiring proof: RequiredProof,
        body: (_ time: Int64) throws(ClientOperationError) -> JSONValue
    ) async throws(ClientOperationError) -> VerifiedResponse {
        do {
            return try await postOnce(to: path, requiring: proof, body: body)
        } catch {
            guard case .refused(let notice) = error, let told = notice.timeTold else { throw error }
            environment.correctClock(to: told)
            return try await postOnce(to: path, requiring: proof, body: body)
        }
    }

    /// The same without the repetition.
    func postOnce(
        to path: String, requiring proof: RequiredProof,
        body: (_ time: Int64) throws(ClientOperationError) -> JSONValue
    ) async throws(ClientOperationError) -> VerifiedResponse {
        let time = try environment.now()
        let draft = installation.draft("POST", path: path, body: try body(time))
        var verified = try await SignedRequestSender(environment: environment).send(
            draft, as: installation.release, at: time, authority: installation.authorityKeys
        ) { response in
            if case .signature(by: let keys) = proof { keys(response) } else { [:] }
        }
        environment.confirm(time, by: verified)
        if installation.connectionVouches { verified.acceptUnsignedRefusal() }
        if let notice = verified.notice {
            let isAuthoritys = verified.signer != nil || notice.isGenuine
            throw isAuthoritys && notice.isOfWrongCredentials ? .wrongCredentials : .refused(notice)
        }
        switch verified.proof {
        case .signature: return verified
        case .headSignature: throw .notUnderstood("\(path): the answer is too long")
        case .unsigned(let reason):
            guard case .authoritySignatureIfKeyKnown = proof, installation.authorityKey == nil else {
                throw .notGenuine("\(path): \(reason.detail)")
            }
            return verified
        }
    }
}

extension Installation {
    /// The authority's keys as the app was built with them.
    var authorityKeys: AuthorityKeys {
        AuthorityKeys(current: authorityKey, next: authorityKey == nil ? nil : nextAuthorityKey)
    }
}

/// The members of a response's JSON, each read with the required type.
struct ResponseFields {
    private let document: JSONDocument
    private let root: JSON
    /// Names the response in error texts.
    private let route: String

    init(_ response: Response, of route: String) throws(ClientOperationError) {
        let bytes = response.message.body
        do {
            document = try JSONReader.read(bytes.isEmpty ? Array("{}".utf8) : bytes)
        } catch {
            throw .notUnderstood("\(route): the answer is not JSON: \(error)")
        }
        root = document.root
        self.route = route
    }

    private init(_ document: JSONDocument, root: JSON, route: String) {
        self.document = document
        self.root = root
        self.route = route
    }

    func text(_ name: String) throws(ClientOperationError) -> String {
        guard let text = root[name]?.string else { throw missing(name, expected: "a string") }
        return text
    }

    func optionalText(_ name: String) -> String? { root[name]?.string }

    /// Whether the member is present and true.
    func says(_ name: String) -> Bool {
        if case .bool(true)? = root[name]?.content { true } else { false }
    }

    /// Base64url; exactly `count` bytes if that is given.
    func bytes(_ name: String, count: Int? = nil) throws(ClientOperationError) -> [UInt8] {
        guard let text = root[name]?.string, let bytes = Base64.decode(text, as: .url),
            count.map({ $0 == bytes.count }) ?? true
        else {
            throw missing(name, expected: count.map { "\($0) bytes in base64url" } ?? "bytes in base64url")
        }
        return bytes
    }

    /// Whole seconds, or another number that is not negative.
    func number(_ name: String) throws(ClientOperationError) -> Int64 {
        guard let value = root[name], let number = document.integer(value, in: 0...(1 << 53)) else {
            throw missing(name, expected: "a whole number")
        }
        return Int64(number)
    }

    /// Checks a new password against the minimum that the authority states: only the device sees the
    /// password.
    func checkLength(of password: Password) throws(ClientOperationError) {
        guard let value = root["password_min"],
            let minimum = document.integer(value, in: 1...Password.longestTyped)
        else {
            throw missing("password_min", expected: "a number from 1 to \(Password.longestTyped)")
        }
        guard password.codePoints >= minimum else { throw .passwordTooShort(minimum: minimum) }
    }

    func token() throws(ClientOperationError) -> SessionToken {
        let text = Array(try text("token").utf8)
        guard let token = SessionToken(text.span) else { throw missing("token", expected: "a token") }
        return token
    }

    func object(_ name: String) throws(ClientOperationError) -> ResponseFields {
        guard let value = root[name], value.members != nil else { throw missing(name, expected: "an object") }
        return ResponseFields(document, root: value, route: "\(route): \(name)")
    }

    func objects(_ name: String) throws(ClientOperationError) -> [ResponseFields] {
        guard let elements = root[name]?.elements else { throw missing(name, expected: "a list") }
        return elements.map { ResponseFields(document, root: $0, route: "\(route): \(name)") }
    }

    func missing(_ name: String, expected: String) -> ClientOperationError {
        .notUnderstood("\(route): \(name): expected \(expected)")
    }
}
