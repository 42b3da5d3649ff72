import CountersignAuthority
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// Clients that register, sign in and renew their sessions at a server, all of them one step at a time. It
/// makes the bodies of the requests of a step and reads the responses; a load generator signs and sends them,
/// so that the clients' computation is over before the server's work is measured.
package struct LoginClients {
    /// The steps in their order, each with the path of its request below the authority's prefix.
    package enum Step: String, Sendable, CaseIterable {
        case registrationStart = "registration/start"
        case registrationFinish = "registration/finish"
        case loginStart = "login/start"
        case loginFinish = "login/finish"
        case refresh = "token"
    }

    private let clients: [BenchClient]
    /// The body of each client's next request.
    private var bodies: [JSONValue] = []
    private var tokens: [SessionToken] = []

    /// The accounts have successive numbers from `first`. `release` is the key id of the release that signs
    /// the requests.
    package init(
        _ count: Int, from first: Int = 0, of app: AppName, release: String
    ) throws(OperationalError) {
        var clients: [BenchClient] = []
        for number in first..<first + count {
            clients.append(try BenchClient(number, of: app, release: release))
        }
        self.clients = clients
    }

    /// The bodies of the requests of `step`, one for each client, which has taken the response to the step
    /// before. `now` is in whole Unix seconds.
    package mutating func requests(of step: Step, at now: Int64) throws(OperationalError) -> [JSONValue] {
        switch step {
        case .registrationStart:
            bodies = try each { client, _ in
                [
                    "account": .string(client.name.description),
                    "request": .bytes(try client.beginRegistration()),
                ]
            }
        case .loginStart:
            bodies = try each { client, _ in
                [
                    "account": .string(client.name.description), "ke1": .bytes(try client.beginLogin()),
                    "device": client.binding.device.json,
                ]
            }
        case .refresh:
            bodies = try each { client, index in try client.refresh(of: tokens[index], at: now) }
        case .registrationFinish, .loginFinish: break
        }
        return bodies
    }

    /// Takes the responses to the requests of `step`, in the order of the requests. Throws if one is not what
    /// the step requires. Of a finished registration that is its status alone, which the load generator
    /// checks.
    package mutating func take(_ responses: [String], to step: Step) throws(OperationalError) {
        guard responses.count == clients.count else {
            throw OperationalError(
                .failed, message: "bench: \(responses.count) responses to \(clients.count) requests")
        }
        switch step {
        case .registrationStart:
            bodies = try each { client, index in
                let response = try ResponseMembers(responses[index], of: step)
                let handle = try response.bytes("handle")
                let sealed = try client.endRegistration(
                    response: try response.bytes("response"), handle: handle,
                    key: try response.bytes("registration_key"))
                return [
                    "account": .string(client.name.description), "handle": .bytes(handle),
                    "sealed_record": .bytes(sealed),
                ]
            }
        case .registrationFinish: break
        case .loginStart:
            bodies = try each { client, index in
                let response = try ResponseMembers(responses[index], of: step)
                let finish = try client.endLogin(
                    id: try response.bytes("login_id"), ke2: try response.bytes("ke2"))
                return [
                    "login_id": .bytes(finish.loginID), "ke3": .bytes(finish.ke3),
                    "signature": .bytes(finish.signature), "mac": .bytes(finish.mac),
                ]
            }
        case .loginFinish: tokens = try sessions(in: responses, of: step, epoch: 0)
        case .refresh:
            let renewed = try sessions(in: responses, of: step, epoch: 1)
            guard renewed.map(\.id) == tokens.map(\.id) else {
                throw OperationalError(.failed, message: "bench: a refresh returned another session")
            }
            tokens = renewed
        }
    }

    /// The tokens of the responses: each of another session, and all in `epoch`.
    private func sessions(
        in responses: [String], of step: Step, epoch: UInt32
    ) throws(OperationalError) -> [SessionToken] {
        var found: [SessionToken] = []
        for response in responses { found.append(try ResponseMembers(response, of: step).token()) }
        guard Set(found.map(\.id)).count == found.count, found.allSatisfy({ $0.epoch == epoch }) else {
            throw OperationalError(.failed, message: "bench: \(step.rawValue): not the expected sessions")
        }
        return found
    }

    private func each(_ work: (BenchClient, Int) throws -> JSONValue) throws(OperationalError) -> [JSONValue]
    {
        do {
            return try clients.indices.map { try work(clients[$0], $0) }
        } catch let error as OperationalError {
            throw error
        } catch {
            throw OperationalError(.failed, message: "bench: a client: \(error)")
        }
    }
}

extension BenchClient {
    /// The body of a request that renews the session of the login that was finished last.
    fileprivate func refresh(of token: SessionToken, at now: Int64) throws -> JSONValue {
        guard let root else { throw OperationalError(.failed, message: "bench: no session to renew") }
        let attempt = SystemRandom().bytes(RefreshTranscript.attemptCount)
        let nonce = SystemRandom().bytes(RefreshTranscript.nonceCount)
        let transcript = RefreshTranscript(
            app: app.description, release: binding.release, token: token, attempt: attempt, time: now,
            counter: 1, nonce: nonce
        ).bytes
        let mac = root.requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
        return [
            "token": .string(token.description), "attempt": .bytes(attempt), "time": .integer(now),
            "counter": 1, "nonce": .bytes(nonce),
            "purpose": .string(RefreshTranscript.Purpose.renew.rawValue),
            "mac": .bytes(mac.indices.map { mac[$0] }),
            "signature": .bytes(signing.sign(transcript.span) ?? []),
        ]
    }
}

/// The members of a response's JSON.
private struct ResponseMembers {
    private let root: JSON
    private let step: LoginClients.Step

    init(_ text: String, of step: LoginClients.Step) throws(OperationalError) {
        self.step = step
        do {
            root = try JSONReader.read(Array(text.utf8)).root
        } catch {
            throw OperationalError(
                .failed, message: "bench: \(step.rawValue): the response is not JSON: \(error)")
        }
    }

    func bytes(_ name: String) throws(OperationalError) -> [UInt8] {
        guard let text = root[name]?.string, let bytes = Base64.decode(text, as: .url) else {
            throw missing(name)
        }
        return bytes
    }

    func token() throws(OperationalError) -> SessionToken {
        guard let text = root["token"]?.string, let token = SessionToken(text) else { throw missing("token") }
        return token
    }

    private func missing(_ name: String) -> OperationalError {
        OperationalError(.failed, message: "bench: \(step.rawValue): the response has no `\(name)`")
    }
}
