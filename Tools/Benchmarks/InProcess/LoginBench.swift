import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// The server's cost of OPAQUE logins, including store and durable session, without sockets, HTTP and the
/// gate. The clients' computation runs between the server's steps and is not counted.
package struct LoginBench: Sendable {
    package struct Figures: Sendable {
        package var logins: Int
        /// Microseconds of the process's CPU for each login: its start, the proof at its finish, and the
        /// opening of the session.
        package var start: Double
        package var finish: Double
        package var open: Double
        /// Logins in a second by the clock, from start to durable session. On one core where the process is
        /// bound to one.
        package var perSecond: Double
    }

    /// Logins that wait for their session to be durable, at most.
    private static let callers = 64

    private let app: AppName
    private let release: AppRelease
    private let registration: Registration
    private let enrolment: Enrolment
    private let login: Login
    private let sessions: SessionLifecycle
    private let writer: GroupWriter
    private let count: Int
    private let now = SystemTime().now

    /// Makes a deployment in `folder`, which the caller removes, for so many logins of an account each.
    package init(in folder: String, logins: Int) throws(OperationalError) {
        count = logins
        let data = try DataFolder("\(folder)/data", absence: .create)
        let deployment = try Deployment(
            folder: data, store: StorePlace.sqlite(path: data.database).open(),
            environment: [MasterKeySource.variable: Hex.encode(SystemRandom().bytes(32).span)])
        app = try AppName(argument: "bench")
        release = try LoginBench.release(in: deployment, app: app, now: now)
        writer = try GroupWriter(
            StorePlace.sqlite(path: data.database).open(authenticatingBy: deployment.rows))
        let keys = try ReleaseKeyDirectory(deployment)
        let live = try SessionDirectory(
            deployment, keys: keys,
            reader: StorePlace.sqlite(path: data.database).open(authenticatingBy: deployment.rows),
            writer: writer)
        let replay = try ReplayFile(path: data.replay, expecting: nil, now: now)
        sessions = SessionLifecycle(deployment, directory: live, writer: writer, replay: replay)
        enrolment = Enrolment(sessions)
        let accountKeys = try AccountKeys(deployment)
        registration = Registration(accountKeys, for: .signUp)
        login = Login(
            accountKeys,
            reading: StorePlace.sqlite(path: data.database).open(authenticatingBy: deployment.rows),
            pending: PendingLogins(capacity: logins))
    }

    private static func release(in deployment: Deployment, app: AppName, now: Int64) throws(OperationalError)
        -> AppRelease
    {
        _ = try deployment.addApp(app, settings: [], requiring: .signed, at: now)
        guard let platform = Platform("ios"), let version = Version("1.0"), let id = KeyID("r_bench") else {
            throw OperationalError(.failed, message: "bench: no release")
        }
        let draft = ReleaseDraft(
            app: app, platform: platform, version: version, scheme: .messageSignatures, id: id,
            secret: Secret(random: 32))
        _ = try deployment.addRelease(draft, at: now)
        guard let release = try ReleaseKeyDirectory(deployment).release(for: id) else {
            throw OperationalError(.failed, message: "bench: no release")
        }
        return release
    }

    package func run() async throws(OperationalError) -> Figures {
        do {
            return try await measure()
        } catch let refusal as Refusal {
            throw OperationalError(.failed, message: "bench: \(refusal.code.name): \(refusal.detail)")
        } catch {
            throw OperationalError(.failed, message: "bench: \(error)")
        }
    }

    private func measure() async throws -> Figures {
        var clients: [BenchClient] = []
        for number in 0..<count {
            clients.append(try BenchClient(number, of: app, release: release.id.description))
        }
        try await runConcurrently(clients) { client in
            let record = try client.register(registration, at: now)
            try await enrolment.signUp(record, name: client.name, in: app, at: now)
        }
        let requests = try clients.map { try ($0.begin(), try limits($0)) }

        var timer = CPUTimer()
        var answers: [LoginAnswer] = []
        for (start, receipt) in requests {
            answers.append(try login.start(start, from: .stranger(.unknown), receipt: receipt, at: now))
        }
        let starts = timer.lap()
        let finishes = try zip(clients, answers).map { try $0.end($1) }
        _ = timer.lap()
        let proved = try finishes.map { try login.finish($0, for: .login, at: now) }
        let proofs = timer.lap()
        try await runConcurrently(proved) { _ = try await sessions.open($0, from: release, at: now) }
        let opens = timer.lap()
        writer.stop()
        let each = 1 / Double(count)
        return Figures(
            logins: count, start: starts.cpu * each, finish: proofs.cpu * each, open: opens.cpu * each,
            perSecond: 1_000_000 / ((starts.wall + proofs.wall + opens.wall) * each))
    }

    private func limits(_ client: BenchClient) throws -> LoginLimits.Receipt {
        guard
            case .allowed(let receipt) = LoginLimits.one.start(
                app: app, account: client.name, from: .stranger(.unknown), at: now * 1000)
        else { throw OperationalError(.failed, message: "bench: limited") }
        return receipt
    }

    /// Does `work` for each, some of them side by side.
    private func runConcurrently<Element: Sendable>(
        _ elements: [Element], work: @escaping @Sendable (Element) async throws -> Void
    ) async throws {
        let length = max(1, (elements.count + LoginBench.callers - 1) / LoginBench.callers)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for start in stride(from: 0, to: elements.count, by: length) {
                let lane = elements[start..<min(start + length, elements.count)]
                group.addTask { for element in lane { try await work(element) } }
            }
            try await group.waitForAll()
        }
    }
}

extension LoginLimits {
    /// Limits that count, to include their cost, and refuse no login.
    fileprivate static let one: LoginLimits = {
        var rules = LoginLimits.Rules()
        rules.address = RateLimit(burst: 1_000_000, refillInterval: .seconds(1))
        return LoginLimits(rules)
    }()
}

/// Microseconds from one lap to the next: by the clock, and of the process's CPU.
private struct CPUTimer {
    private var last = CPUTimer.now()

    mutating func lap() -> (wall: Double, cpu: Double) {
        let now = CPUTimer.now()
        defer { last = now }
        return (now.wall - last.wall, now.cpu - last.cpu)
    }

    private static func now() -> (wall: Double, cpu: Double) {
        (microseconds(CLOCK_MONOTONIC), microseconds(CLOCK_PROCESS_CPUTIME_ID))
    }

    private static func microseconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) * 1_000_000 + Double(time.tv_nsec) / 1_000
    }
}
