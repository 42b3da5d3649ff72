import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// `POST password/start` and `/finish`: a session proves the old password and registers the new one. Source:
/// docs/protocol.md, "Another password".
struct PasswordRoutes: Sendable {
    let services: AccountServices

    var routes: [Route] {
        [
            Route(.passwordStart) { (call) throws(Refusal) in
                try await start(call)
            },
            Route(.passwordFinish) { (call) throws(Refusal) in
                try await finish(call)
            },
        ]
    }

    private func start(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        // The finish would come on another connection, and so to the successor, which does not know this
        // login.
        guard !services.handOver.hasHandedOver else {
            throw Refusal(.unavailable, detail: "the server is being restarted", retryAfter: 1)
        }
        let release = try call.release()
        let app = try release.appName()
        let session = try PasswordRoutes.session(of: call)
        let body = try RequestBodyMembers(of: call.request.body)
        let (ke1, request) = (try body.bytes("ke1", count: 96), try body.bytes("request", count: 32))
        let binding = try await services.steps.attempt { () throws(Refusal) in
            try services.binding(of: session, from: release)
        }
        let start = try LoginStart(ke1: ke1, binding: binding, of: app, changingPasswordOf: session.id)
        // The session's signature identifies its device: guesses from unknown devices do not count against
        // it.
        let caller = LoginLimits.Caller.knownDevice(binding.device.id)
        let (answer, begun) = try await services.withGuessDebited(
            by: caller, account: binding.account, of: app, at: call.now
        ) {
            (receipt) throws(Refusal) in
            try await services.steps.attempt { () throws(Refusal) in
                let begun = try services.passwordChanges.start(
                    request, of: binding.account, in: app, at: call.now)
                return (try services.login.start(start, from: caller, receipt: receipt, at: call.now), begun)
            }
        }
        return RouteResult([
            "login_id": encoded(answer.loginID), "ke2": encoded(answer.ke2),
            "response": encoded(begun.response),
            "handle": encoded(begun.handle), "registration_key": encoded(begun.registrationKey),
            "password_min": .integer(Int64(release.policy.passwordMinimum)),
        ])
    }

    private func finish(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let session = try PasswordRoutes.session(of: call)
        let body = try RequestBodyMembers(of: call.request.body)
        let handle = try body.bytes("handle", upTo: RegistrationRoutes.mostHandleBytes)
        let sealed = try body.bytes("sealed_record", upTo: RegistrationRoutes.mostRecordBytes)
        var finish = try body.finish()
        let digest = SHA256.digest(sealed.span)
        finish.bound = [digest.indices.map { digest[$0] }]
        let (proof, now) = (finish, call.now)
        let (proved, registration) = try await services.steps.attempt { () throws(Refusal) in
            let proved = try services.login.finish(proof, for: .passwordChange, of: session.id, at: now)
            let account = proved.account
            let registration = try services.passwordChanges.finish(
                sealed, handle: handle, of: account.name, in: account.app, at: now
            ).registration
            return (proved, registration)
        }
        await services.refund(
            proved.receipt, of: proved.account.name, in: proved.account.app, at: now)
        try await services.enrolment.change(registration, of: proved, keeping: session.id, at: now)
        return RouteResult([:])
    }

    private static func session(of call: RouteCall) throws(Refusal) -> Session {
        guard let session = call.caller?.session else {
            throw Refusal(.sessionRequired, detail: "this route needs a session")
        }
        guard session.kind == .device else {
            throw Refusal(
                .forbidden, detail: "a session of bearer tokens has no device key to change a password with")
        }
        return session
    }
}

extension AccountServices {
    /// The device and release of the session, to which the login is bound.
    fileprivate func binding(of session: Session, from release: AppRelease) throws(Refusal) -> LoginBinding {
        do throws(OperationalError) {
            guard let account = try sessions.life.reader.account(session.account.number),
                let stored = try sessions.life.reader.session(session.id),
                case .device(let credentials) = stored.credentials,
                let signingKey = P256Point(credentials.signingKey),
                let agreementKey = P256Point(credentials.agreementKey),
                let name = Device.Name(stored.deviceName)
            else {
                throw OperationalError(
                    .failed, message: "session \(session.id): its row is gone, or cannot be read")
            }
            return LoginBinding(
                app: release.app, account: account.name, release: release.id.description,
                device: Device(
                    signingKey: signingKey, agreementKey: agreementKey, kind: stored.deviceClass, name: name))
        } catch {
            throw Refusal(.unavailable, detail: error.message, retryAfter: 5)
        }
    }
}
