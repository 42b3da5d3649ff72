import CountersignSeal
import Testing

@testable import CountersignOpaque

/// A client and a server, with everything that both know; each message passes through `wire`, where a test
/// may change it.
struct Ceremony {
    typealias Wire = (MessageKind, [UInt8]) -> [UInt8]

    var keys: ServerKeys
    var password: Password
    var credential = Array("alice".utf8)
    var parties = Parties(client: .publicKey, server: .publicKey)
    var context = LoginContext.empty
    var stretching = KeyStretchingFunction.noneForTheVectorsOfTheStandardOnly

    init(password: [UInt8]) throws {
        keys = try ServerKeys.random()
        self.password = try #require(Password(Secret(copying: password.span)))
    }

    func register(_ wire: Wire = { $1 }) throws -> ClientRegistration.RegistrationOutput {
        let client = try ClientRegistration(password)
        let request = try RegistrationRequest(wire(.registrationRequest, client.request.bytes))
        let answer = try keys.respond(to: request, credential: credential)
        let response = try RegistrationResponse(wire(.registrationResponse, answer.bytes))
        return try client.finish(response, as: parties, stretching: stretching)
    }

    /// As the server keeps it.
    func stored(_ registered: ClientRegistration.RegistrationOutput, _ wire: Wire = { $1 }) throws
        -> RegistrationRecord
    {
        let bytes = wire(.registrationRecord, registered.record.bytes.exposed)
        return try RegistrationRecord(Secret(copying: bytes.span))
    }

    /// What each side has at the end, if there is one. The server is `server`, where it knows something else.
    func logIn(
        _ record: RegistrationRecord, server other: Ceremony? = nil, _ wire: Wire = { $1 }
    ) throws -> (client: ClientLogin.LoginOutput, server: Secret) {
        let other = other ?? self
        let client = try ClientLogin(password)
        let ke1 = try KE1(wire(.ke1, client.ke1.bytes))
        let server = try ServerLogin(
            ke1, record: record, credential: other.credential, as: other.parties, context: other.context,
            keys: other.keys)
        let ke2 = try KE2(wire(.ke2, server.ke2.bytes))
        let loggedIn = try client.finish(ke2, as: parties, context: context, stretching: stretching)
        let ke3 = try KE3(wire(.ke3, loggedIn.ke3.bytes))
        let sessionKey = try server.finish(ke3)
        return (loggedIn, sessionKey)
    }

    /// How a login ends that must not succeed.
    func refusal(
        _ record: RegistrationRecord, server: Ceremony? = nil, _ wire: Wire = { $1 },
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> OpaqueError? {
        do {
            _ = try logIn(record, server: server, wire)
            Issue.record("the login succeeded", sourceLocation: sourceLocation)
            return nil
        } catch let refusal as OpaqueError {
            return refusal
        }
    }
}
