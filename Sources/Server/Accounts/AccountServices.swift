import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire

/// What the routes of sign-up, login and password work with; one for all loops.
struct AccountServices: Sendable {
    let login: Login
    let signUps: Registration
    let passwordChanges: Registration
    let enrolment: Enrolment
    let limits: LoginLimits
    /// Where OPAQUE is computed: fractions of a millisecond, of which a storm brings thousands, so not on loops.
    let steps: HashingPool
    /// Where passwords are hashed: 19 MiB and 20 ms each.
    let passwords: HashingPool
    let replay: ReplayFile
    let handOver: HandOver
    let sessions: SessionService
    let bearers: BearerSessions
    let ladder: Ladder
    /// Whose an unsigned call is.
    let keys: LiveKeys
}

/// What the logins of old clients are judged by.
struct Ladder: Sendable {
    let apps: LegacyApps
    let signIn: LegacySignIn
}

extension HashingPool {
    /// Work that may refuse.
    nonisolated(nonsending) func attempt<Value: Sendable>(
        _ work: @escaping @Sendable () throws(Refusal) -> Value
    ) async throws(Refusal) -> Value {
        let result = try await run { () -> Result<Value, Refusal> in
            do throws(Refusal) { return .success(try work()) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
