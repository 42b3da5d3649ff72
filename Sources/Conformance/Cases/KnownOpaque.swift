import CountersignOpaque
import CountersignSeal
import CountersignWire

/// One registration and one login of OPAQUE, computed by the gateway's code from randomness that the port is
/// told.
struct KnownOpaque {
    private let typed = Secret(random: 16)
    private let client = Array("alice".utf8)
    private let server = Array("shop".utf8)
    private let credential = SystemRandom().bytes(16)
    private let context = SystemRandom().bytes(45)

    private var parties: Parties {
        get throws(CaseFailure) {
            guard let client = Identity.Name(client), let server = Identity.Name(server) else {
                throw .notStaged("no identity")
            }
            return Parties(client: .name(client), server: .name(server))
        }
    }

    private var password: Password {
        get throws(CaseFailure) {
            guard let password = Password(typed) else { throw .notStaged("no password") }
            return password
        }
    }

    private struct Registered {
        var request: [UInt8]
        var response: [UInt8]
        var record: RegistrationRecord
        var random: DrawnBytes
    }

    private func register(with keys: ServerKeys) throws(CaseFailure) -> Registered {
        let random = DrawnBytes()
        let (password, parties) = (try password, try parties)
        do throws(CryptographyFault) {
            let registration = try ClientRegistration(password, random: random)
            let request = registration.request
            let response = try keys.respond(to: request, credential: credential)
            let registered = try registration.finish(
                response, as: parties, stretching: .standard, random: random)
            return Registered(
                request: request.bytes, response: response.bytes, record: registered.record, random: random)
        } catch {
            throw .notStaged("\(error)")
        }
    }

    private func newKeys() throws(CaseFailure) -> ServerKeys {
        do throws(CryptographyFault) { return try .random() } catch { throw .notStaged("\(error)") }
    }

    func checkRegistration(_ port: Port) throws(CaseFailure) {
        let registered = try register(with: newKeys())
        let answer = try port.done(
            "known-registration",
            with: [
                "password": .bytes(typed.exposed), "blind": .bytes(try registered.random.scalar(0)),
                "response": .bytes(registered.response), "envelope_nonce": .bytes(registered.random[1]),
                "client": .bytes(client), "server": .bytes(server),
            ])
        try answer.expect("request", equals: registered.request, of: "The registration")
        try answer.expect("record", equals: registered.record.bytes.exposed, of: "The registration")
    }

    func checkLogin(_ port: Port) throws(CaseFailure) {
        let keys = try newKeys()
        let record = try register(with: keys).record
        let random = DrawnBytes()
        guard let bound = LoginContext(context) else { throw .notStaged("no context") }
        let (parties, password) = (try parties, try password)
        let ke1: KE1
        let ke2: KE2
        let finished: ClientLogin.LoggedIn
        do {
            let login = try ClientLogin(password, random: random)
            ke1 = login.ke1
            let server = try ServerLogin(
                ke1, record: record, credential: credential, as: parties, context: bound, keys: keys)
            ke2 = server.ke2
            finished = try login.finish(ke2, as: parties, context: bound, stretching: .standard)
        } catch {
            throw CaseFailure.notStaged("\(error)")
        }
        let answer = try port.done(
            "known-login",
            with: [
                "password": .bytes(typed.exposed), "blind": .bytes(try random.scalar(0)),
                "nonce": .bytes(random[1]),
                "seed": .bytes(random[2]), "ke2": .bytes(ke2.bytes), "client": .bytes(client),
                "server": .bytes(self.server), "context": .bytes(context),
            ])
        try answer.expect("ke1", equals: ke1.bytes, of: "The login")
        try answer.expect("ke3", equals: finished.ke3.bytes, of: "The login")
        try answer.expect("session_key", equals: finished.sessionKey.exposed, of: "The login")
    }
}
