import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire

/// What the routes of sign-up, login and password work with; one for all loops.
struct AccountServices: Sendable {
    let deployment: Deployment
    let login: Login
    let signUps: Registration
    let passwordChanges: Registration
    let enrolment: Enrolment
    let limits: LoginLimits
    /// A connection for reading, which never waits behind the writer's disk.
    let reader: any Store
    /// Where OPAQUE is computed: fractions of a millisecond, of which a storm brings thousands, so not on loops.
    let steps: HashingPool
    /// Where passwords are hashed: 19 MiB and 20 ms each.
    let passwords: HashingPool
    let replay: ReplayFile
    let sessions: any SessionOpening
}

/// Where a proved login becomes a session.
protocol SessionOpening: Sendable {
    /// The answer to the finish, under the new session's key.
    nonisolated(nonsending) func open(
        _ proved: ProvedLogin, for call: RouteCall, of release: ReleaseKey
    ) async throws(Refusal) -> RouteAnswer

    /// These have ended in the store; nothing is to be let in under them any more.
    func drop(_ ended: [SessionID])
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
