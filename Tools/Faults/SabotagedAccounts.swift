import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire

/// Stores the roots of sessions as they are, and opens sealed ones of earlier too.
struct UnsealedRoots: SessionRootSealer {
    private let sound = MasterKeyRootSealer()

    func seal(_ root: SessionRoot, as binding: SealBinding, under keys: MasterKeyRing) -> [UInt8] {
        [SealSlot.first.rawValue]
            + root.secret.withExposedBytes { $0.withUnsafeBufferPointer { Array($0) } }
    }

    func open(_ sealed: [UInt8], as binding: SealBinding, under keys: MasterKeyRing) -> Secret? {
        guard sealed.count == 1 + SessionRoot.count else {
            return sound.open(sealed, as: binding, under: keys)
        }
        return Secret(copying: sealed.span.extracting(1...))
    }
}

/// Looks for an account before a login does any work for it.
struct UnknownAccountScreen: Sendable {
    enum Reaction { case tell, hurry }

    let accounts: any AccountStore
    let reaction: Reaction

    /// Whether an unknown name is to be answered at once. Throws where it is to be told.
    func hurries(_ name: AccountName, of app: AppName) throws(Refusal) -> Bool {
        let isKnown: Bool
        do {
            isKnown = try accounts.account(name, of: app) != nil
        } catch {
            throw Refusal(.unavailable, detail: error.message, retryAfter: 5)
        }
        if isKnown { return false }
        switch reaction {
        case .tell:
            throw Refusal(.unavailable, detail: "there is no account of that name", retryAfter: 5)
        case .hurry: return true
        }
    }
}

/// Answers a start for an unknown name without OPAQUE's computation, or tells that it is unknown.
struct RevealingLogin: PasswordLogin {
    let inner: Login
    let screen: UnknownAccountScreen

    func knows(_ start: LoginStart) throws(Refusal) -> Bool {
        _ = try screen.hurries(start.binding.account, of: start.app)
        return try inner.knows(start)
    }

    func start(
        _ start: LoginStart, from caller: LoginLimits.Caller, receipt: LoginLimits.Receipt, at now: Int64
    ) throws(Refusal) -> LoginAnswer {
        if try screen.hurries(start.binding.account, of: start.app) {
            let random = SystemRandom()
            return LoginAnswer(loginID: random.bytes(16), ke2: random.bytes(320))
        }
        return try inner.start(start, from: caller, receipt: receipt, at: now)
    }

    func finish(
        _ finish: LoginFinish, for purpose: LoginBinding.Purpose, of session: SessionID?, at now: Int64
    ) throws(Refusal) -> VerifiedLogin {
        try inner.finish(finish, for: purpose, of: session, at: now)
    }

    func prove(
        _ password: Secret, of name: AccountName, in app: AppName
    ) throws(Refusal) -> (account: Account, credential: [UInt8]) {
        if try screen.hurries(name, of: app) {
            throw Refusal(.wrongCredentials, detail: "no account of that name")
        }
        return try inner.prove(password, of: name, in: app)
    }
}

/// Refuses an unknown name without the slow hash, or tells that it is unknown.
struct RevealingLegacyLogin: LegacyPasswordLogin {
    let inner: LegacyLoginService
    let screen: UnknownAccountScreen

    func judge(
        _ attempt: LegacyLoginAttempt, at now: Int64
    ) throws(Refusal) -> LegacyLoginService.Accepted? {
        if try screen.hurries(attempt.counted, of: attempt.app.name) { return nil }
        return try inner.judge(attempt, at: now)
    }

    func judge(
        _ password: Secret, of name: AccountName, in app: LegacyApp, at now: Int64
    ) throws(Refusal) -> (account: Account, registration: StoredRegistration)? {
        try inner.judge(password, of: name, in: app, at: now)
    }

    func credential(
        keeping kept: Secret, on rung: Rung, of name: AccountName, in app: AppName
    ) throws(Refusal) -> LegacyCredential {
        try inner.credential(keeping: kept, on: rung, of: name, in: app)
    }
}

/// Lets every keyed request begin and stores no response. A copy still waits for a request in progress.
struct ForgetfulIdempotencyStore: IdempotencyStore {
    func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) async throws(Refusal) -> IdempotencyState { .begun }

    func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) async throws(Refusal) {}

    func abandon(_ request: IdempotentRequest) async {}

    func forget(before time: TrustedTime) {}
}
