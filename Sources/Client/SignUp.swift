import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Makes an account, or, with a code that an administrator gave out, sets the password of one that is there. The password stays
/// here: what travels is of no use without the authority's own secret. Source: docs/protocol.md, "Sign-up"; RFC 9807 §5.
package struct SignUp: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    /// `resetCode` is the one-time code, for an account whose password was forgotten: UTF-8, at most
    /// ``SealedRegistration/longestCode`` bytes. It is sealed with the record. Computes a slow hash.
    nonisolated(nonsending) package func callAsFunction(
        _ account: AccountName, _ password: Password, resetCode: Secret? = nil
    ) async throws(ClientProblem) {
        let trust = try installation.trustForPasswords()
        // Without one this is a sign-up; what is no code must not turn into that.
        if let resetCode, !(1...SealedRegistration.longestCode).contains(resetCode.count) {
            throw .incomplete("the code is none: expected 1 to \(SealedRegistration.longestCode) bytes")
        }
        let state = try surroundings.keeper.state()
        let routes = AuthorityRoutes(installation: installation, surroundings: surroundings)
        let registration = try Blinding.registration(password)
        let members: [(name: String, value: JSONValue)] = [("account", .string(account.description))]
        var start = members + [("request", .bytes(registration.request.bytes))]
        if resetCode != nil { start.append(("reset", true)) }
        let opening = start
        let started = try await routes.post("/registration/start", trust: trust) { (_) throws(ClientProblem) in
            .object(opening)
        }
        let answer = try AnswerBody(started.response, of: "registration/start")
        let app = try KnownApp(installation, state).settled(by: answer)
        let (record, handle) = try SignUp.sealed(
            registration, answer, app: app, account, with: resetCode, stretching: surroundings.stretching)
        let finish = members + [("handle", .bytes(handle)), ("sealed_record", .bytes(record))]
        _ = try await routes.post("/registration/finish", trust: trust) { (_) throws(ClientProblem) in .object(finish) }
        try surroundings.opaqueAccounts?.insert(account)
        try surroundings.keeper.change { state in
            guard state.app != app else { return .keep(()) }
            state.app = app
            return .write(())
        }
    }

    /// What is sent at the end, and the handle that goes with it.
    static func sealed(
        _ registration: consuming ClientRegistration, _ answer: AnswerBody, app: String, _ account: AccountName,
        with resetCode: Secret? = nil, stretching: KeyStretching
    ) throws(ClientProblem) -> (record: [UInt8], handle: [UInt8]) {
        let bytes = try answer.bytes("response", count: MessageKind.registrationResponse.count)
        let handle = try answer.bytes("handle")
        let receiver = try answer.bytes("registration_key", count: 32)
        guard let parties = LoginBinding.parties(app: app, account: account) else {
            throw .notUnderstood("the app's name is empty")
        }
        let response: RegistrationResponse
        do {
            response = try RegistrationResponse(bytes)
        } catch {
            throw answer.missing("response", "two elements")
        }
        let registered: ClientRegistration.Registered
        do {
            registered = try registration.finish(response, as: parties, stretching: stretching)
        } catch {
            throw .machine("the password cannot be stretched; it takes 19 MiB of memory")
        }
        let purpose = SealedRegistration.purpose(app: app, account: account, handle: handle)
        let contents = SealedRegistration(record: registered.record.bytes, resetCode: resetCode)
        guard let sealed = contents.sealed(to: receiver, for: purpose) else {
            throw answer.missing("registration_key", "a key that can be sealed to")
        }
        return (sealed, handle)
    }
}
