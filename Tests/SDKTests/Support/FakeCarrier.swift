import ClientFakes
import Countersign
import CountersignSchemes
import CountersignTestKit
import CountersignWire

/// Carries requests to an authority of the tests' own, behind which a backend answers what a test says.
actor FakeBackend {
    /// What becomes of a request for the backend.
    enum Reaction: Sendable {
        /// The authority lets it through, and the backend answers so, unsigned.
        case answer(Int, [HeaderField] = [], [UInt8] = [])
        /// It never arrives, or its answer does not.
        case fail(TransportError)
        /// The same after so many seconds of the clocks.
        case failLate(TransportError, seconds: Int64, TestClock)
        /// The authority refuses it in its own name.
        case refuse(String, [(name: String, value: JSONValue)] = [])
        /// The authority signs this answer, and these bytes arrive.
        case sign([UInt8], arriving: [UInt8])
        /// No response until the waiting call is cancelled.
        case silence
    }

    let authority: FakeAuthority
    private(set) var sent: [OutgoingRequest] = []
    private var planned: [(path: String, reaction: Reaction)] = []
    private(set) var reactions = 0

    init(_ authority: FakeAuthority) { self.authority = authority }

    /// To the next request whose target has that in it.
    func plan(_ reaction: Reaction, at path: String) { planned.append((path, reaction)) }

    /// Those that were sent to a path.
    func copies(of path: String) -> [OutgoingRequest] {
        sent.filter { String(decoding: $0.target, as: UTF8.self).contains(path) }
    }

    func carry(_ request: OutgoingRequest) async throws(TransportError) -> IncomingResponse {
        sent.append(request)
        let target = String(decoding: request.target, as: UTF8.self)
        guard let index = planned.firstIndex(where: { target.contains($0.path) }) else {
            return try await answer(of: authority, to: request)
        }
        let reaction = planned.remove(at: index).reaction
        reactions += 1
        switch reaction {
        case .answer(let status, let fields, let body):
            let own = try await answer(of: authority, to: request)
            guard own.status == 200 else { return own }
            return FakeBackend.response(status, fields, body)
        case .fail(let error): throw error
        case .failLate(let error, let seconds, let clock):
            clock.pass(seconds)
            await authority.advance(by: seconds)
            throw error
        case .refuse(let code, let members):
            let draft = draft(request)
            guard let response = try? await authority.refuse(code, members, to: draft) else {
                throw TransportError(.machine("the authority of the tests"), fate: .notSent)
            }
            return FakeBackend.response(response)
        case .sign(let body, let arriving):
            guard let response = try? await authority.sign(body, answering: draft(request)) else {
                throw TransportError(.machine("the authority of the tests"), fate: .notSent)
            }
            let message = response.message
            let fields = message.fields.map {
                HeaderField(message.text($0.name), value: message.text($0.value))
            }
            return FakeBackend.response(200, fields, arriving)
        case .silence:
            try? await ManualClock().sleep(for: .seconds(1))
            throw TransportError(.cancelled, fate: .outcomeUnknown)
        }
    }

    private func answer(
        of authority: FakeAuthority, to request: OutgoingRequest
    ) async throws(TransportError) -> IncomingResponse {
        guard let response = try? await authority.answer(draft(request)) else {
            throw TransportError(.machine("the authority of the tests"), fate: .notSent)
        }
        return FakeBackend.response(response)
    }

    private func draft(_ request: OutgoingRequest) -> Draft {
        var draft = Draft(
            method: request.method, target: request.target, authority: request.authority,
            transport: request.origin.security == .tls ? .tls : .plain)
        draft.fields = request.fields.map { field in
            var copy = Draft.Field(name: field.name, value: "")
            copy.value = field.value
            return copy
        }
        switch request.body {
        case .none: break
        case .bytes(let bytes): draft.body = bytes
        // What it is signed as is all that the authority looks at.
        case .replayable(let body): draft.streamed = FakeBackend.streamed(body.length, request)
        case .once(let body): draft.streamed = FakeBackend.streamed(body.length, request)
        }
        return draft
    }

    private static func streamed(_ length: BodyLength, _ request: OutgoingRequest) -> Draft.StreamedBody? {
        guard case .bytes(let count) = length,
            let field = request.fields.first(where: { $0.name == "Content-Digest" }),
            let digest = Base64.decode(
                String(decoding: field.value.dropFirst("sha-256=:".utf8.count).dropLast(), as: UTF8.self),
                as: .standard)
        else { return nil }
        return Draft.StreamedBody(length: count, digest: digest)
    }

    private static func response(_ response: Response) -> IncomingResponse {
        let message = response.message
        let fields = message.fields.map { HeaderField(message.text($0.name), value: message.text($0.value)) }
        return FakeBackend.response(response.status, fields, message.body)
    }

    private static func response(_ status: Int, _ fields: [HeaderField], _ body: [UInt8]) -> IncomingResponse
    {
        IncomingResponse(status: status, fields: fields, body: ResponseBody(WholeBody(body)))
    }
}

extension FakeAuthority {
    /// A success in the session's name.
    func sign(_ body: [UInt8], answering draft: Draft) throws -> Response {
        guard let session else { throw Problem.broken }
        let signer = Credentials(
            keyID: KeyID(session.token(session.epoch)), key: session.key(of: session.epoch))
        let fields = try MessageSignatures().sign(
            status: 200, body: body, answering: draft.request(), as: signer, at: now)
        return Response(status: 200, fields: fields ?? [], body: body)
    }

    /// A refusal in the authority's name, with more members; `unavailable` and `busy` say when to ask again.
    func refuse(_ code: String, _ members: [(name: String, value: JSONValue)], to draft: Draft) throws
        -> Response
    {
        let body = Array(JSONValue.object([("code", .string(code))] + members).text.utf8)
        guard let own = KeyID(MessageSignatures.authorityKeyID) else { throw Problem.broken }
        let status = ["update-required": 426, "unavailable": 503][code] ?? 403
        var fields = try MessageSignatures().sign(
            status: status, body: body, answering: draft.request(),
            as: Credentials(keyID: own, key: SigningKey(answerKey)), at: now)
        if ["unavailable", "busy"].contains(code) {
            fields?.append(Draft.Field(name: "Retry-After", value: "0"))
        }
        return Response(status: status, fields: fields ?? [], body: body)
    }
}

/// The carrier's face of it.
struct FakeCarrier: RequestTransport {
    let backend: FakeBackend

    func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse { try await backend.carry(request) }

    func replaceTrust(by trust: Trust) {}
}

/// A body that is there, in pieces. Safe to share: one reader reads it.
final class WholeBody: BodySource, @unchecked Sendable {
    private static let piece = 400_000
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

    func next() async throws(TransportError) -> [UInt8]? {
        defer { bytes = bytes.dropFirst(WholeBody.piece) }
        return bytes.isEmpty ? nil : Array(bytes.prefix(WholeBody.piece))
    }

    func cancel() {}
}
