import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Another password for who is signed in: proves the old one and registers the new one. The account's other sessions end.
/// Source: docs/protocol.md, "Another password".
package struct ChangePassword: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    /// Throws ``ClientProblem/wrongCredentials`` where `old` is not the password. Computes two slow hashes. Throws
    /// ``ClientProblem/accountChanged`` where another session began here meanwhile. After
    /// ``ClientProblem/outcomeUnknown(_:)`` the next login tells which of the two is the password.
    nonisolated(nonsending) package func callAsFunction(
        from old: Password, to new: Password
    ) async throws(ClientProblem) {
        let state = try surroundings.keeper.state()
        guard let login = state.login else { throw .notSignedIn }
        guard case .device = login.session, let keys = state.keys, let app = KnownApp(installation, state).name else {
            throw .incomplete("the password is changed from a session of OPAQUE's; this one sent its password")
        }
        let signer = try surroundings.signer(keys)
        let proving = try Blinding.login(old)
        let registering = try Blinding.registration(new)
        let routes = OwnRoutes(installation: installation, surroundings: surroundings)
        // The proof names the session: under another one it would be refused as if the password were wrong.
        let owner = SignedCalls.Owner.session(login.id)
        let answer = try await routes.ask(
            "POST", "/password/start",
            ["ke1": .bytes(proving.ke1.bytes), "request": .bytes(registering.request.bytes)],
            as: owner)
        let binding = LoginBinding(
            app: app, account: login.account, release: installation.release.keyID.description,
            device: keys.device(login.deviceClass, login.deviceName))
        let proof = try PasswordProof(proving, answer, binding, stretching: surroundings.stretching)
        let (record, handle) = try SignUp.sealed(
            registering, answer, app: app, login.account, stretching: surroundings.stretching)
        let digest = SHA256.digest(record.span)
        let signed = try proof.signed(
            .passwordChange, by: signer, more: [login.id.bytes, digest.indices.map { digest[$0] }])
        // The proof is good once: a second copy of one that was taken would be refused as if the password were wrong.
        _ = try await routes.ask(
            "POST", "/password/finish",
            .object(signed.members + [("handle", .bytes(handle)), ("sealed_record", .bytes(record))]), as: owner,
            ifLost: .stop)
    }
}
