// OPAQUE's messages: a parsed message is written as the same bytes, and a step responds to any message or
// refuses it.
import CountersignOpaque
import CountersignSeal

private let parties = Parties(client: .publicKey, server: .publicKey)

/// The first byte selects the message type of the rest.
@Sendable func fuzzOpaque(_ bytes: Span<UInt8>) {
    guard bytes.count > 0 else { return }
    let kind = MessageKind.allCases[Int(bytes[0]) % MessageKind.allCases.count]
    let message = (1..<bytes.count).map { bytes[$0] }
    do {
        try read(kind, message)
        precondition(message.count == kind.count, "taken at another length")
    } catch let refusal as OpaqueError {
        precondition(refusal == .malformed(kind), "refused as \(refusal)")
    } catch {
        preconditionFailure("\(error)")
    }
}

private func read(_ kind: MessageKind, _ bytes: [UInt8]) throws {
    switch kind {
    case .registrationRequest:
        let request = try RegistrationRequest(bytes)
        precondition(request.bytes == bytes)
        let response = try ServerKeys.random().respond(to: request, credential: bytes)
        _ = try RegistrationResponse(response.bytes)
    case .registrationResponse:
        let response = try RegistrationResponse(bytes)
        precondition(response.bytes == bytes)
        let registered = try ClientRegistration(password()).finish(response, as: parties, stretching: cheap())
        _ = try RegistrationRecord(registered.record.bytes)
    case .registrationRecord:
        let record = try RegistrationRecord(Secret(copying: bytes.span))
        record.bytes.withExposedBytes { again in
            precondition(bytes.indices.allSatisfy { again[$0] == bytes[$0] })
        }
        let ke1 = try ClientLogin(password()).ke1
        _ = try KE2(answer(ke1, record, ServerKeys.random()).ke2.bytes)
    case .ke1:
        let ke1 = try KE1(bytes)
        precondition(ke1.bytes == bytes)
        let keys = try ServerKeys.random()
        _ = try KE2(answer(ke1, keys.fakeRecord, keys).ke2.bytes)
    case .ke2:
        let ke2 = try KE2(bytes)
        precondition(ke2.bytes == bytes)
        let client = try ClientLogin(password())
        let loggedIn = try? client.finish(ke2, as: parties, context: .empty, stretching: cheap())
        precondition(loggedIn == nil, "an answer to another login was taken")
    case .ke3:
        let ke3 = try KE3(bytes)
        precondition(ke3.bytes == bytes)
        let keys = try ServerKeys.random()
        let server = try answer(ClientLogin(password()).ke1, keys.fakeRecord, keys)
        let sessionKey = try? server.finish(ke3)
        precondition(sessionKey == nil, "a MAC that no one made was taken")
    }
}

private func answer(_ ke1: KE1, _ record: RegistrationRecord, _ keys: ServerKeys) throws -> ServerLogin {
    try ServerLogin(ke1, record: record, credential: [1], as: parties, context: .empty, keys: keys)
}

private func password() -> Password {
    guard let password = Password(Secret(random: 8)) else {
        preconditionFailure("eight bytes are a password")
    }
    return password
}

private func cheap() -> KeyStretchingFunction {
    let salt = [UInt8](repeating: 0, count: 16)
    guard let stretching = KeyStretchingFunction.argon2id(memory: 8, passes: 1, lanes: 1, salt: salt) else {
        preconditionFailure("8 KiB are enough for Argon2id")
    }
    return stretching
}
