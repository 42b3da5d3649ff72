import CountersignAuthority
import CountersignGate
import CountersignWire

/// `POST registration/start` and `/finish`. Source: docs/protocol.md, "Sign-up".
struct RegistrationRoutes: Sendable {
    let services: AccountServices

    var routes: [Route] {
        [
            Route(.registrationStart) {
                (call) throws(Refusal) in
                try await start(call)
            },
            Route(.registrationFinish) {
                (call) throws(Refusal) in
                try await finish(call)
            },
        ]
    }

    private func start(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let release = try call.release()
        let app = try release.appName()
        let body = try RequestBodyMembers(of: call.request.body)
        let account = try body.account()
        let request = try body.bytes("request", count: 32)
        if try !body.isReset() { try RegistrationRoutes.checkIsOpen(release.policy) }
        try await services.debitRegistration(call)
        let begun = try await services.steps.attempt { () throws(Refusal) in
            try services.signUps.start(request, of: account, in: app, at: call.now)
        }
        return RouteResult([
            "response": encoded(begun.response), "handle": encoded(begun.handle),
            "registration_key": encoded(begun.registrationKey), "app": .string(release.app),
            "password_min": .integer(Int64(release.policy.passwordMinimum)),
        ])
    }

    private func finish(_ call: RouteCall) async throws(Refusal) -> RouteResult {
        let release = try call.release()
        let app = try release.appName()
        let body = try RequestBodyMembers(of: call.request.body)
        let account = try body.account()
        let handle = try body.bytes("handle", upTo: RegistrationRoutes.mostHandleBytes)
        let sealed = try body.bytes("sealed_record", upTo: RegistrationRoutes.mostRecordBytes)
        let device = try body.members(ifAny: "device")?.signedResetDevice()
        // Debit before opening the record, which costs the same for every caller that sends one.
        try await services.finishRegistration(for: call) { () throws(Refusal) in
            let finished = try await services.steps.attempt { () throws(Refusal) in
                try services.signUps.finish(
                    sealed, handle: handle, device: device, of: account, in: app, at: call.now)
            }
            let registration = finished.registration
            if let code = finished.resetCode {
                try await services.enrolment.reset(
                    registration, name: account, in: app, by: code, on: finished.device, at: call.now)
            } else {
                try RegistrationRoutes.checkIsOpen(release.policy)
                try await services.enrolment.signUp(registration, name: account, in: app, at: call.now)
            }
        }
        return RouteResult(["account": .string(account.description)])
    }

    /// A caller without a code may register only if the app's policy has open registration.
    private static func checkIsOpen(_ policy: Policy) throws(Refusal) {
        guard policy.registration == .open else {
            throw Refusal(
                .forbidden, detail: "policy registration=admin: accounts are made by administrators")
        }
    }

    static let mostHandleBytes = 128
    static let mostRecordBytes = 512
}
