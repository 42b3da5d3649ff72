import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Both steps of a login. Each computes for a fraction of a millisecond and reads the store: for a thread that is not a loop's.
/// Source: docs/protocol.md, "Login".
package final class Login: Sendable {
    let keys: AccountKeys
    /// A connection of its own, so that no login waits for the writer's disk.
    private let accounts: any AccountStore
    private let pending: PendingLogins
    private let names: EvenLookUp

    package init(_ keys: AccountKeys, reading accounts: any AccountStore, pending: PendingLogins) {
        self.keys = keys
        self.accounts = accounts
        names = EvenLookUp(accounts)
        self.pending = pending
    }

    /// Whether the account knows the start's device. Names without an account are asked about all the same.
    package func knows(_ start: LoginStart) throws(Refusal) -> Bool {
        try Login.reading { () throws(Fault) in
            let account = try names.account(start.binding.account, of: start.app)
            return try accounts.knownDevice(start.binding.device.id, of: account?.number ?? 0) != nil
        }
    }

    /// Answers a start that was debited: `receipt` says what.
    package func start(
        _ start: LoginStart, from caller: LoginLimits.Caller, _ receipt: LoginLimits.Receipt, at now: Int64
    ) throws(Refusal) -> LoginAnswer {
        let found = try Login.reading { () throws(Fault) in try record(of: start.binding.account, in: start.app) }
        #if SABOTAGE
            if Sabotage.isOn(.unknownAccountFast), found.account == nil {
                let random = SystemRandom()
                return LoginAnswer(loginID: random.bytes(PendingLogins.idCount), ke2: random.bytes(320))
            }
        #endif
        guard let parties = start.binding.parties, let context = start.binding.context else {
            throw Refusal(.unavailable, "login: names that OPAQUE cannot bind")
        }
        let answer: ServerLogin
        do throws(CryptographyFault) {
            answer = try ServerLogin(
                start.ke1, record: found.record, credential: found.credential, as: parties, context: context,
                keys: keys.keys)
        } catch {
            throw Refusal(.unavailable, "login: \(error)")
        }
        // Nobody can prove the fake record's password; should somebody, it is no account's.
        let account = found.account?.registration == nil ? nil : found.account?.number
        let login = PendingLogin(answer, start, account: account, credential: found.credential, receipt: receipt)
        let id = pending.add(login, of: PendingLogin.Holder(caller, start), at: now)
        return LoginAnswer(loginID: id, ke2: login.ke2)
    }

    /// Takes the login of that id, whatever comes of it, and says whose it was if everything holds: `wrong-credentials` where
    /// anything does not, and `forbidden` for a locked account, which only who knows the password is told.
    package func finish(
        _ finish: LoginFinish, for purpose: LoginBinding.Purpose, of session: SessionID? = nil, at now: Int64
    ) throws(Refusal) -> ProvedLogin {
        guard let login = pending.take(finish.loginID, at: now), login.purpose == purpose, login.session == session,
            let sessionKey = login.finish(finish.ke3)
        else { throw Login.wrong }
        let keys = LoginKeys(sessionKey: sessionKey)
        let bound = (session.map { [$0.bytes] } ?? []) + finish.bound
        let transcript = login.binding.finishTranscript(
            purpose, loginID: finish.loginID, ke1: login.ke1, ke2: login.ke2, ke3: finish.ke3, more: bound)
        guard FinishProof(finish, transcript).holds(under: keys.finish, of: login.binding.device) else {
            throw Login.wrong
        }
        guard login.binding.device.agreementKey.isOnCurve else {
            throw Refusal(.malformed, "member `device.agreement_key` is no point on P-256")
        }
        let account = try Login.reading { () throws(Fault) in try accounts.account(login.account ?? 0) }
        guard let account, account.state != .removed else { throw Login.wrong }
        guard account.state == .active else { throw Refusal(.forbidden, "account \(account.number) is locked") }
        return ProvedLogin(
            account: account, credential: login.credential, binding: login.binding, keys: keys, receipt: login.receipt)
    }

    struct Found {
        let account: Account?
        let record: RegistrationRecord
        let credential: [UInt8]
    }

    func record(of name: AccountName, in app: AppName) throws(Fault) -> Found {
        let account = try names.account(name, of: app)
        let (record, credential) = try keys.record(of: account, named: name, in: app)
        return Found(account: account, record: record, credential: credential)
    }

    static func reading<Result>(_ body: () throws(Fault) -> Result) throws(Refusal) -> Result {
        do throws(Fault) {
            return try body()
        } catch {
            throw Refusal(.unavailable, "accounts: \(error.message)", retryAfter: 5)
        }
    }

    package static let wrong = Refusal(.wrongCredentials, "the proof does not hold")
}

extension PendingLogin.Holder {
    fileprivate init(_ caller: LoginLimits.Caller, _ start: LoginStart) {
        switch caller {
        case .stranger(let address): self = .address(address)
        case .knownDevice(let device): self = .device(start.binding.account.bytes + [0] + device)
        }
    }
}
