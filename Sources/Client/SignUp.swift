import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Creates an account or, with a code from an administrator, sets the password of an existing one. The
/// password stays on the device: what is sent is of no use without the authority's own secret. Source:
/// docs/protocol.md, "Sign-up"; RFC 9807 §5.
package struct SignUp: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    package init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    /// `resetCode` is the one-time code, for an account whose password was forgotten: UTF-8, at most
    /// ``SealedRegistration/longestCode`` bytes. It is sealed with the record. With a code, the account then
    /// knows this device, named `device`, if its key can be used now. Computes a slow hash.
    package func callAsFunction(
        _ account: AccountName, password: Password, resetCode: Secret? = nil,
        on device: (kind: Device.Class, name: Device.Name)? = nil
    ) async throws(ClientOperationError) {
        let proof = try installation.requiredProofForPasswords()
        // Without a code this is a sign-up; an invalid code must not turn the call into one.
        if let resetCode, !(1...SealedRegistration.longestCode).contains(resetCode.count) {
            throw .incomplete("the code is none: expected 1 to \(SealedRegistration.longestCode) bytes")
        }
        let state = try environment.keeper.state()
        let routes = AuthorityRoutes(installation: installation, environment: environment)
        let registration = try OpaqueStart.registration(password)
        let members: [(name: String, value: JSONValue)] = [("account", .string(account.description))]
        var start = members + [("request", .bytes(registration.request.bytes))]
        if resetCode != nil { start.append(("reset", true)) }
        let opening = start
        let started = try await routes.post(to: "/registration/start", requiring: proof) {
            (_) throws(ClientOperationError) in
            .object(opening)
        }
        let answer = try ResponseFields(started.response, of: "registration/start")
        try answer.checkLength(of: password)
        let app = try AppIdentity(installation, state: state).resolved(by: answer)
        let (record, handle) = try SignUp.sealed(
            registration, response: answer, app: app, account: account, with: resetCode,
            stretching: environment.stretching)
        var closing = members + [("handle", .bytes(handle)), ("sealed_record", .bytes(record))]
        if let resetCode, let device, let presented = resetDevice() {
            let known = ResetDevice(
                signingKey: presented.keys.signingPoint, kind: device.kind, name: device.name)
            let transcript = known.transcript(
                app: app, account: account, handle: handle, sealedRecord: record)
            closing.append(("device", try known.signed(transcript, by: presented.signer, code: resetCode)))
        }
        let finish = closing
        _ = try await routes.post(to: "/registration/finish", requiring: proof) {
            (_) throws(ClientOperationError) in
            .object(finish)
        }
        try environment.opaqueAccounts?.insert(account)
        try environment.keeper.change { state in
            guard state.app != app else { return .keep(()) }
            state.app = app
            return .write(())
        }
    }

    /// The keys that the next login presents. Nil if they cannot be used now: the reset succeeds without
    /// them, and the device becomes known with its first login.
    private func resetDevice() -> LoginDevice? {
        let known = try? environment.keeper.readVault().keys
        if let known, known.isBoundToPresence {
            guard let signer = environment.signer, signer.point == known.signingPoint else { return nil }
            return LoginDevice(keys: known, signer: signer)
        }
        return try? LoginDevice(environment, keeping: .vault)
    }

    /// The body of the last request, and the handle that goes with it.
    static func sealed(
        _ registration: consuming ClientRegistration, response answer: ResponseFields, app: String,
        account: AccountName,
        with resetCode: Secret? = nil, stretching: KeyStretchingFunction
    ) throws(ClientOperationError) -> (record: [UInt8], handle: [UInt8]) {
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
            throw answer.missing("response", expected: "two elements")
        }
        let registered: ClientRegistration.RegistrationOutput
        do {
            registered = try registration.finish(response, as: parties, stretching: stretching)
        } catch {
            throw .machine("the password cannot be stretched; it takes 19 MiB of memory")
        }
        let purpose = SealedRegistration.purpose(app: app, account: account, handle: handle)
        let contents = SealedRegistration(record: registered.record.bytes, resetCode: resetCode)
        guard let sealed = contents.sealed(to: receiver, for: purpose) else {
            throw answer.missing("registration_key", expected: "a key that can be sealed to")
        }
        return (sealed, handle)
    }
}

extension ResetDevice {
    /// The member of the request: what the device says of itself, and its proof.
    fileprivate func signed(
        _ transcript: [UInt8], by signer: any DeviceSigner, code: Secret
    ) throws(ClientOperationError) -> JSONValue {
        let signature = try signer.sign(transcript)
        let mac = ResetDevice.key(from: code).authenticate((transcript + signature).span)
        return [
            "signing_key": .bytes(signingKey.bytes), "class": .string(kind.rawValue),
            "name": .string(name.description), "signature": .bytes(signature),
            "mac": .bytes(mac.indices.map { mac[$0] }),
        ]
    }
}
