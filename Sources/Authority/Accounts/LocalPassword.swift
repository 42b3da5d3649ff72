import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Both sides of OPAQUE in one process, for passwords that the authority is told: by an administrator, an import, or a client
/// that cannot speak OPAQUE. Each computes Argon2id, 19 MiB: for a command, or for the hashing pool.
extension AccountKeys {
    /// A registration of that password, as a client of that name would have made it.
    package func register(
        _ password: Secret, of account: AccountName, in app: AppName
    ) throws(Fault) -> StoredRegistration {
        guard let parties = LoginBinding.parties(app: app.description, account: account) else {
            throw Fault(.usage, "password: the app or the account has no name that OPAQUE could bind")
        }
        let password = try AccountKeys.typed(password)
        let credential = SystemRandom().bytes(StoredRegistration.credentialCount)
        let record = try Fault.wrapping("registration") { () throws(CryptographyFault) in
            let client = try ClientRegistration(password)
            let response = try keys.respond(to: client.request, credential: credential)
            return try client.finish(response, as: parties, stretching: .standard).record
        }
        return keep(record, credential: credential, of: account, in: app)
    }

    /// Whether the password opens what the account has: for a name without an account, by the same work, never.
    func isOpened(
        by password: Secret, _ record: RegistrationRecord, _ credential: [UInt8], of account: AccountName,
        in app: AppName
    ) throws(Fault) -> Bool {
        guard let password = try? Password(typed: password),
            let parties = LoginBinding.parties(app: app.description, account: account)
        else { return false }
        return try Fault.wrapping("login") { () throws(CryptographyFault) in
            let client = try ClientLogin(password)
            let server = try ServerLogin(
                client.ke1, record: record, credential: credential, as: parties, context: .empty, keys: keys)
            let ke2 = server.ke2
            do throws(OpaqueFailure) {
                let proof = try client.finish(ke2, as: parties, context: .empty, stretching: .standard)
                return (try? server.finish(proof.ke3)) != nil
            } catch {
                switch error {
                case .refused: return false
                case .fault(let fault): throw fault
                }
            }
        }
    }

    private static func typed(_ password: Secret) throws(Fault) -> Password {
        do throws(Password.Problem) {
            return try Password(typed: password)
        } catch {
            throw Fault(.usage, error.description)
        }
    }
}

extension Login {
    /// Whose password it is: `wrong-credentials` and `forbidden` as at ``finish(_:for:of:at:)``. The credential is that of the
    /// registration which it opened.
    package func prove(
        _ password: Secret, of name: AccountName, in app: AppName
    ) throws(Refusal) -> (account: Account, credential: [UInt8]) {
        let found = try Login.reading { () throws(Fault) in try record(of: name, in: app) }
        #if SABOTAGE
            if Sabotage.isOn(.unknownAccountFast), found.account == nil { throw Login.wrong }
        #endif
        let isOpened = try Login.reading { () throws(Fault) in
            try keys.isOpened(by: password, found.record, found.credential, of: name, in: app)
        }
        guard isOpened, let account = found.account, account.registration != nil, account.state != .removed else {
            throw Login.wrong
        }
        guard account.state == .active else { throw Refusal(.forbidden, "account \(account.number) is locked") }
        return (account, found.credential)
    }
}
