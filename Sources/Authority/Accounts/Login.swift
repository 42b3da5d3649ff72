import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The first message of a client that proves its password, to sign in or to set another one.
package struct LoginStart: Sendable {
    package let app: AppName
    package let binding: LoginBinding
    let ke1: KE1
    let purpose: LoginBinding.Purpose
    /// The session whose account's password is to be changed; nil for logins.
    let session: SessionID?

    /// `ke1` is OPAQUE's KE1 message, 96 bytes.
    package init(
        ke1: [UInt8], binding: LoginBinding, of app: AppName, changingPasswordOf session: SessionID? = nil
    ) throws(Refusal) {
        guard let ke1 = try? KE1(ke1) else {
            throw Refusal(.malformed, detail: "member `ke1` is not OPAQUE's first message")
        }
        self.ke1 = ke1
        self.app = app
        self.binding = binding
        self.session = session
        purpose = session == nil ? .login : .passwordChange
    }

    /// Whether the device signed this start; whether the account knows the device is another question.
    /// `time` is the signed time in whole Unix seconds.
    package func isSigned(_ signature: [UInt8], for time: Int64) -> Bool {
        let transcript = binding.startProof(ke1: ke1.bytes, time: time)
        return binding.device.signingKey.verify(signature.span, of: transcript.span) == .equal
    }

    /// Identifies the start in a replay guard. It is not the signature, because each ECDSA signature has
    /// two valid forms.
    package func replayKey(for time: Int64) -> ShortBytes {
        let transcript = binding.startProof(ke1: ke1.bytes, time: time)
        return ShortBytes(SHA256.digest(transcript.span))
    }
}

/// The answer to a start: of the same length and structure for every name.
package struct LoginAnswer: Sendable {
    /// 16 bytes.
    package let loginID: [UInt8]
    /// 320 bytes.
    package let ke2: [UInt8]

    package init(loginID: [UInt8], ke2: [UInt8]) {
        self.loginID = loginID
        self.ke2 = ke2
    }
}

/// What the routes of login and password ask of OPAQUE's server. ``Login`` is the implementation.
package protocol PasswordLogin: Sendable {
    /// Whether the account knows the start's device.
    func knows(_ start: LoginStart) throws(Refusal) -> Bool
    /// Answers a start that was debited: `receipt` says what.
    func start(
        _ start: LoginStart, from caller: LoginLimits.Caller, receipt: LoginLimits.Receipt, at now: Int64
    ) throws(Refusal) -> LoginAnswer
    /// Takes the login of that id, and returns whose it was; `session` is the session whose password is
    /// changed, nil for logins.
    func finish(
        _ finish: LoginFinish, for purpose: LoginBinding.Purpose, of session: SessionID?, at now: Int64
    ) throws(Refusal) -> VerifiedLogin
    /// The account whose password this is, and the credential of the registration that it opened.
    func prove(
        _ password: Secret, of name: AccountName, in app: AppName
    ) throws(Refusal) -> (account: Account, credential: [UInt8])
}

extension PasswordLogin {
    /// The same for a login.
    package func finish(
        _ finish: LoginFinish, for purpose: LoginBinding.Purpose, at now: Int64
    ) throws(Refusal) -> VerifiedLogin {
        try self.finish(finish, for: purpose, of: nil, at: now)
    }
}

/// The second message of a client that proves its password.
package struct LoginFinish: Sendable {
    package var loginID: [UInt8]
    /// OPAQUE's KE3 message, 64 bytes.
    package var ke3: [UInt8]
    /// The device's signature, 64 bytes.
    package var signature: [UInt8]
    /// A MAC under a key derived from OPAQUE's session key, 32 bytes.
    package var mac: [UInt8]
    /// Further values that the transcript binds: SHA-256 of the sealed record, for a change of password.
    package var bound: [[UInt8]] = []

    package init(loginID: [UInt8], ke3: [UInt8], signature: [UInt8], mac: [UInt8]) {
        self.loginID = loginID
        self.ke3 = ke3
        self.signature = signature
        self.mac = mac
    }
}

/// A login whose password and device were verified.
package struct VerifiedLogin: Sendable {
    package let account: Account
    /// The credential of the registration that was verified: a change that depends on it is applied only
    /// while the account has it.
    package let credential: [UInt8]
    package let binding: LoginBinding
    package let keys: LoginKeys
    /// The debit to refund, since the login was no guess.
    package let receipt: LoginLimits.Receipt
}

/// The proofs of a finish besides OPAQUE's own: the device's signature over the transcript, and the
/// client's MAC over both. Source: docs/protocol.md, "Login".
struct FinishProof {
    private let signature: [UInt8]
    private let mac: [UInt8]
    private let transcript: [UInt8]

    init(_ finish: LoginFinish, over transcript: [UInt8]) {
        signature = finish.signature
        mac = finish.mac
        self.transcript = transcript
    }

    func holds(under key: HMACSHA256, of device: Device) -> Bool {
        // The MAC comes first, because it is cheap to check and fails for a client that has not computed
        // the session key.
        let expected = key.authenticate((transcript + signature).span)
        guard ConstantTime.equals(expected.span, mac.span) == .equal else { return false }
        return device.signingKey.verify(signature.span, of: transcript.span) == .equal
    }
}

/// Both steps of a login. Each computes for a fraction of a millisecond and reads the store; call it off
/// the event loops. Source: docs/protocol.md, "Login".
package final class Login: PasswordLogin {
    let keys: AccountKeys
    /// A connection of its own, so that no login waits for the writer's disk.
    private let accounts: any AccountStore
    private let pending: any PendingLoginTable
    private let names: ConstantTimeAccountLookup

    package init(_ keys: AccountKeys, reading accounts: any AccountStore, pending: any PendingLoginTable) {
        self.keys = keys
        self.accounts = accounts
        names = ConstantTimeAccountLookup(accounts)
        self.pending = pending
    }

    /// Whether the account knows the start's device. For names without an account the same lookups are
    /// made.
    package func knows(_ start: LoginStart) throws(Refusal) -> Bool {
        try Login.unavailableOnFault { () throws(OperationalError) in
            let account = try names.account(start.binding.account, of: start.app)
            return try accounts.knownDevice(start.binding.device.id, of: account?.number ?? 0) != nil
        }
    }

    /// Answers a start whose debit is `receipt`.
    package func start(
        _ start: LoginStart, from caller: LoginLimits.Caller, receipt: LoginLimits.Receipt, at now: Int64
    ) throws(Refusal) -> LoginAnswer {
        let found = try Login.unavailableOnFault { () throws(OperationalError) in
            try record(of: start.binding.account, in: start.app)
        }
        guard let parties = start.binding.parties, let context = start.binding.context else {
            throw Refusal(.unavailable, detail: "login: names that OPAQUE cannot bind")
        }
        let answer: ServerLogin
        do {
            answer = try ServerLogin(
                start.ke1, record: found.record, credential: found.credential, as: parties, context: context,
                keys: keys.keys)
        } catch {
            throw Refusal(.unavailable, detail: "login: \(error)")
        }
        // No client can prove the fake record's password; if one did, it would still belong to no account.
        let account = found.account?.registration == nil ? nil : found.account?.number
        let login = PendingLogin(
            answer, start: start, account: account, credential: found.credential, receipt: receipt)
        let id = try Login.unavailableOnFault { () throws(OperationalError) in
            try pending.add(login, of: PendingLogin.Holder(caller, start: start), at: now)
        }
        return LoginAnswer(loginID: id, ke2: login.ke2)
    }

    /// Takes the pending login of that id and returns its account if every proof holds. Refuses with
    /// `login-expired` if no login of that id is pending, with `wrong-credentials` if a proof does not hold,
    /// and with `forbidden` for a locked account, which only a client that knows the password learns.
    package func finish(
        _ finish: LoginFinish, for purpose: LoginBinding.Purpose, of session: SessionID?, at now: Int64
    ) throws(Refusal) -> VerifiedLogin {
        // An id that was never given, one whose login is over, and one that has expired are the same here.
        let taken = try Login.unavailableOnFault { () throws(OperationalError) in
            try pending.take(finish.loginID, at: now)
        }
        guard let login = taken else {
            throw Refusal(.loginExpired, detail: "no login is pending under this id")
        }
        guard login.purpose == purpose, login.session == session,
            let sessionKey = login.finish(finish.ke3)
        else { throw Login.wrongCredentials }
        let keys = LoginKeys(sessionKey: sessionKey)
        let bound = (session.map { [$0.bytes] } ?? []) + finish.bound
        let transcript = login.binding.finishTranscript(
            purpose, loginID: finish.loginID, ke1: login.ke1, ke2: login.ke2, ke3: finish.ke3, more: bound)
        guard FinishProof(finish, over: transcript).holds(under: keys.finish, of: login.binding.device) else {
            throw Login.wrongCredentials
        }
        guard login.binding.device.agreementKey.isOnCurve else {
            throw Refusal(.malformed, detail: "member `device.agreement_key` is not a point on P-256")
        }
        let account = try Login.unavailableOnFault { () throws(OperationalError) in
            try accounts.account(login.account ?? 0)
        }
        guard let account, account.state != .removed else { throw Login.wrongCredentials }
        guard account.state == .active else {
            throw Refusal(.forbidden, detail: "account \(account.number) is locked")
        }
        return VerifiedLogin(
            account: account, credential: login.credential, binding: login.binding, keys: keys,
            receipt: login.receipt)
    }

    struct AccountRecord {
        let account: Account?
        let record: RegistrationRecord
        let credential: [UInt8]
    }

    func record(of name: AccountName, in app: AppName) throws(OperationalError) -> AccountRecord {
        let account = try names.account(name, of: app)
        let (record, credential) = try keys.record(of: account, named: name, in: app)
        return AccountRecord(account: account, record: record, credential: credential)
    }

    static func unavailableOnFault<Result>(_ body: () throws(OperationalError) -> Result) throws(Refusal)
        -> Result
    {
        do {
            return try body()
        } catch {
            throw Refusal(error, in: "accounts")
        }
    }

    package static let wrongCredentials = Refusal(.wrongCredentials, detail: "the proof does not hold")
}

extension PendingLogin.Holder {
    fileprivate init(_ caller: LoginLimits.Caller, start: LoginStart) {
        switch caller {
        case .stranger(let address): self = .address(address)
        case .knownDevice(let device): self = .device(start.binding.account.bytes + [0] + device)
        }
    }
}

/// Both sides of OPAQUE in one process, for passwords that the authority receives in clear: from an
/// administrator, an import, or a client without OPAQUE. Each operation computes Argon2id with 19 MiB; call
/// it in a command or on the hashing pool.
extension AccountKeys {
    /// A registration of that password, as a client of that name would have made it.
    package func register(
        _ password: Secret, of account: AccountName, in app: AppName
    ) throws(OperationalError) -> StoredRegistration {
        guard let parties = LoginBinding.parties(app: app.description, account: account) else {
            throw OperationalError(
                .usage, message: "password: the app or the account has no name that OPAQUE could bind")
        }
        let password = try AccountKeys.typed(password)
        let credential = SystemRandom().bytes(StoredRegistration.credentialCount)
        let record = try OperationalError.translating("registration") { () throws(SealError) in
            let client = try ClientRegistration(password)
            let response = try keys.respond(to: client.request, credential: credential)
            return try client.finish(response, as: parties, stretching: .standard).record
        }
        return seal(record, credential: credential, of: account, in: app)
    }

    /// Whether the password opens the record. For a name without an account it does the same work and
    /// returns false.
    func isOpened(
        by password: Secret, record: RegistrationRecord, credential: [UInt8], of account: AccountName,
        in app: AppName
    ) throws(OperationalError) -> Bool {
        guard let password = try? Password(typed: password),
            let parties = LoginBinding.parties(app: app.description, account: account)
        else { return false }
        return try OperationalError.translating("login") { () throws(SealError) in
            let client = try ClientLogin(password)
            let server = try ServerLogin(
                client.ke1, record: record, credential: credential, as: parties, context: .empty, keys: keys)
            let ke2 = server.ke2
            do throws(OpaqueError) {
                let proof = try client.finish(ke2, as: parties, context: .empty, stretching: .standard)
                return (try? server.finish(proof.ke3)) != nil
            } catch {
                if case .cryptography(let failure) = error { throw failure }
                return false
            }
        }
    }

    private static func typed(_ password: Secret) throws(OperationalError) -> Password {
        do {
            return try Password(typed: password)
        } catch {
            throw OperationalError(.usage, message: error.description)
        }
    }
}

extension Login {
    /// Verifies the password and returns its account; refuses with `wrong-credentials` and `forbidden` as
    /// ``finish(_:for:of:at:)`` does. The credential is that of the registration that the password opened.
    package func prove(
        _ password: Secret, of name: AccountName, in app: AppName
    ) throws(Refusal) -> (account: Account, credential: [UInt8]) {
        let found = try Login.unavailableOnFault { () throws(OperationalError) in
            try record(of: name, in: app)
        }
        let isOpened = try Login.unavailableOnFault { () throws(OperationalError) in
            try keys.isOpened(
                by: password, record: found.record, credential: found.credential, of: name, in: app)
        }
        guard isOpened, let account = found.account, account.registration != nil, account.state != .removed
        else {
            throw Login.wrongCredentials
        }
        guard account.state == .active else {
            throw Refusal(.forbidden, detail: "account \(account.number) is locked")
        }
        return (account, found.credential)
    }
}
