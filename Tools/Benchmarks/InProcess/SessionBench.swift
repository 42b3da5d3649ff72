import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// Measures what a million sessions cost: memory, the time to load them at the start, a key's first use, a
/// refresh, and the delay until a revocation takes effect. It uses a store on disk and everything a server
/// has but sockets.
package struct SessionBench {
    package struct Figures: Sendable {
        package var sessions: Int
        /// Seconds from a closed file to a gate that knows all sessions, with every page checked:
        /// wall-clock time, and the process's CPU time, which is the wall-clock time on an idle core.
        package var loadSeconds: Double
        package var loadCPUSeconds: Double
        /// Resident memory that loading took.
        package var mebibytes: Double
        /// CPU time of a token's first use, with unsealing, and of its second use.
        package var firstUseNanoseconds: Double
        package var nextUseNanoseconds: Double
        /// Refreshes per second of CPU time of all threads together, including the writer and the page
        /// cache: the rate of one core.
        package var refreshesPerSecond: Double
        /// From the return of the revoking command to the refusal of the next request.
        package var revocationMilliseconds: Double
    }

    static let refreshes = 2_000

    let deployment: Deployment
    let makeStore: (StoreInspection) -> any Store
    /// When everything was made, whole Unix seconds.
    let start: Int64
    let device: BenchDevice
    let app: AppName
    let release: Release

    /// `deployment` is used by this benchmark alone, in a temporary folder; `makeStore` opens another
    /// connection to its store. `start` is when everything is said to have been made, in whole Unix seconds.
    package init(
        _ deployment: Deployment, at start: Int64 = 1_800_000_000,
        makeStore: @escaping (StoreInspection) -> any Store
    ) throws(OperationalError) {
        guard let app = AppName("bench"), let platform = Platform("ios"), let version = Version("1.0"),
            let id = KeyID("r_bench")
        else { throw OperationalError(.failed, message: "bench: names") }
        self.deployment = deployment
        self.start = start
        self.makeStore = makeStore
        self.app = app
        device = try BenchDevice()
        _ = try deployment.addApp(
            app, settings: ["slots=unlimited", "token-lifetime=24h"], requiring: .signed,
            at: start)
        let draft = ReleaseDraft(
            app: app, platform: platform, version: version, scheme: .messageSignatures, id: id,
            secret: Secret(random: 32))
        release = try deployment.addRelease(draft, at: start).release
    }

    /// `progress` receives a description of each stage.
    package func run(
        sessions count: Int, progress: (String) -> Void
    ) async throws(OperationalError) -> Figures {
        // A server has run on the deployment before it has sessions, and has made its keys.
        _ = try SessionDirectory(
            deployment, keys: ReleaseKeyDirectory(deployment), reader: deployment.store,
            writer: GroupWriter(makeStore(.header)))
        let ids = try fill(count, progress: progress)
        progress("reading them")
        SessionBench.giveBackMemory()
        let before = try SessionBench.residentBytes()
        let began = (
            clock: SessionBench.seconds(CLOCK_MONOTONIC), core: SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID)
        )
        // As a server does: the deployment's connection begins the check of every page, the others trust it.
        self.deployment.store.close()
        let pageCheck = StorePageCheck()
        let deployment = try Deployment(
            folder: self.deployment.folder, store: makeStore(.concurrent(pageCheck)), environment: [:])
        defer { deployment.store.close() }
        let keys = try ReleaseKeyDirectory(deployment)
        let writer = try GroupWriter(makeStore(.header))
        let live = try SessionDirectory.load(
            deployment, keys: keys, reader: makeStore(.header), writer: writer, beside: pageCheck)
        let loadSeconds = SessionBench.seconds(CLOCK_MONOTONIC) - began.clock
        let loadCPUSeconds = SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID) - began.core
        let mebibytes = Double(try SessionBench.residentBytes() - before) / 1_048_576
        guard live.counts.all == count else {
            throw OperationalError(.failed, message: "bench: \(live.counts.all) sessions in memory")
        }
        progress("measuring")
        let uses = try measureUses(of: ids, directory: live)
        let replay = try ReplayFile(path: deployment.folder.replay, expecting: nil, now: start)
        let life = SessionLifecycle(deployment, directory: live, writer: writer, replay: replay)
        let rate = try await measureRefreshes(of: ids, lifecycle: life, keys: keys)
        let revocation = try await measureRevocation(of: ids, directory: live, keys: keys, replay: replay)
        writer.stop()
        return Figures(
            sessions: count, loadSeconds: loadSeconds, loadCPUSeconds: loadCPUSeconds, mebibytes: mebibytes,
            firstUseNanoseconds: uses.first, nextUseNanoseconds: uses.next, refreshesPerSecond: rate,
            revocationMilliseconds: revocation)
    }

    static func seconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Returns freed memory to the system: memory freed while the store was filled would otherwise be
    /// reused, and the growth would not show. Source: malloc_trim(3), which the C library's module leaves
    /// out.
    private static func giveBackMemory() {
        typealias Trim = @convention(c) (Int) -> CInt
        guard let symbol = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(symbol, to: Trim.self)(0)
    }

    /// Resident memory in bytes. Source: proc(5), `/proc/self/statm`: the second figure, in pages.
    private static func residentBytes() throws(OperationalError) -> Int {
        guard let file = fopen("/proc/self/statm", "re") else {
            throw OperationalError(.failed, message: "/proc/self/statm: cannot open")
        }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, 256, file) != nil else {
            throw OperationalError(.failed, message: "/proc/self/statm: cannot read")
        }
        let figures = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .split(
                separator: " ")
        guard figures.count > 1, let pages = Int(figures[1]) else {
            throw OperationalError(.failed, message: "/proc/self/statm: no figures")
        }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }
}

/// The one device that all of the benchmark's sessions are bound to: only the server's side is measured.
struct BenchDevice: Sendable {
    let signing: PrivateKey
    let signingPoint: [UInt8]
    let agreementPoint: [UInt8]
    let root = SessionRoot(secret: Secret(random: SessionRoot.count))

    init() throws(OperationalError) {
        guard let signing = try? PrivateKey(random: .ecdsaP256),
            let point = P256Point(subjectPublicKeyInfo: signing.publicKey.der),
            let agreement = try? AgreementKey()
        else { throw OperationalError(.failed, message: "bench: no keys on P-256") }
        self.signing = signing
        signingPoint = point.bytes
        agreementPoint = agreement.publicPoint.bytes
    }
}

/// Accounts with one session each, as logins leave them.
extension SessionBench {
    private static let chunk = 2_000

    func fill(_ count: Int, progress: (String) -> Void) throws(OperationalError) -> [SessionID] {
        let store = makeStore(.header)
        defer { store.close() }
        var ids: [SessionID] = []
        ids.reserveCapacity(count)
        var last: Int64 = 0
        while ids.count < count {
            let wanted = min(SessionBench.chunk, count - ids.count)
            try addAccounts(ids.count..<ids.count + wanted, to: store)
            let accounts = try store.accounts(of: app, after: last, limit: wanted)
            guard accounts.count == wanted, let newest = accounts.last else {
                throw OperationalError(.failed, message: "bench: \(accounts.count) accounts of \(wanted)")
            }
            last = newest.number
            var sessions: [StoredSession] = []
            for account in accounts { sessions.append(try session(of: account)) }
            let faults = try store.applyTogether(sessions.map(opening))
            if let fault = faults.lazy.compactMap({ $0 }).first { throw fault }
            ids += sessions.map(\.id)
            if ids.count.isMultiple(of: 100_000) { progress("\(ids.count) of \(count) sessions written") }
        }
        return ids
    }

    private func opening(_ session: StoredSession) -> (any Store) throws(OperationalError) -> Void {
        { (store: any Store) throws(OperationalError) -> Void in
            _ = try store.open(session, proving: [1], slots: .single, at: start)
        }
    }

    private func addAccounts(_ numbers: Range<Int>, to store: any Store) throws(OperationalError) {
        var drafts: [AccountDraft] = []
        for number in numbers {
            guard let name = try? AccountName(normalizing: "account-\(number)@example.com") else {
                throw OperationalError(.failed, message: "bench: account name")
            }
            var draft = AccountDraft(app: app, name: name, created: start, tombstones: nil)
            draft.registration = StoredRegistration(credential: [1], sealedRecord: [])
            drafts.append(draft)
        }
        let recorded = deployment.auditDraft(
            for: .accountImport, on: .app(app), details: [("accounts", .integer(Int64(drafts.count)))])
        guard try store.insert(drafts, recording: recorded).isEmpty else {
            throw OperationalError(.failed, message: "bench: names taken")
        }
    }

    private func session(of account: Account) throws(OperationalError) -> StoredSession {
        guard let id = SessionID(SystemRandom().bytes(SessionID.count).span) else {
            throw OperationalError(.failed, message: "bench: id")
        }
        var credentials = DeviceCredentials(
            signingKey: device.signingPoint, agreementKey: device.agreementPoint,
            epochBegan: start,
            sealedRoot: deployment.seal(device.root, of: id, in: app, epoch: 0))
        credentials.release = release.id
        return StoredSession(
            id: id, account: account.number, app: app, platform: release.platform, deviceClass: .phone,
            deviceName: "phone", created: start, credentials: .device(credentials))
    }
}

extension SessionBench {
    /// CPU nanoseconds of this thread, the median over first uses of tokens and over their second uses.
    func measureUses(of ids: [SessionID], directory live: SessionDirectory) throws(OperationalError) -> (
        first: Double, next: Double
    ) {
        var first: [Double] = []
        var next: [Double] = []
        for id in ids.prefix(5_000) {
            let token = SessionToken(id: id, epoch: 0)
            for isFirst in [true, false] {
                let began = SessionBench.seconds(CLOCK_THREAD_CPUTIME_ID)
                guard try live.session(for: token) != nil else {
                    throw OperationalError(.failed, message: "bench: a session is not found")
                }
                let took = (SessionBench.seconds(CLOCK_THREAD_CPUTIME_ID) - began) * 1e9
                if isFirst { first.append(took) } else { next.append(took) }
            }
        }
        return (GateBench.median(first), GateBench.median(next))
    }

    /// Refreshes different sessions, eight at a time as on a busy loop, and measures the CPU time of the
    /// whole process.
    func measureRefreshes(
        of ids: [SessionID], lifecycle life: SessionLifecycle, keys: ReleaseKeyDirectory
    ) async throws(OperationalError) -> Double {
        guard let release = try keys.release(for: release.id) else {
            throw OperationalError(.failed, message: "bench: no release")
        }
        let requests = ids.suffix(SessionBench.refreshes).map { refresh(of: $0, from: release) }
        // The writer opens its connection at its first change, once in a server's life.
        _ = try? await life.writer.write { (store) throws(OperationalError) in try store.sessionChange() }
        let start = start
        let began = SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID)
        let answered = await withTaskGroup(of: Int.self) { group in
            for lane in 0..<8 {
                group.addTask {
                    var answered = 0
                    for index in stride(from: lane, to: requests.count, by: 8) {
                        if (try? await life.refresh(requests[index], at: start)) != nil {
                            answered += 1
                        }
                    }
                    return answered
                }
            }
            return await group.reduce(0, +)
        }
        guard answered == requests.count else {
            throw OperationalError(.failed, message: "bench: \(answered) refreshes answered")
        }
        return Double(requests.count) / (SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID) - began)
    }

    private func refresh(of id: SessionID, from release: AppRelease) -> RefreshRequest {
        var request = RefreshRequest(
            release: release, token: SessionToken(id: id, epoch: 0),
            attempt: SystemRandom().bytes(RefreshTranscript.attemptCount), time: start,
            counter: 1,
            nonce: SystemRandom().bytes(RefreshTranscript.nonceCount), mac: [], signature: [])
        let transcript = request.transcript
        let mac = device.root.requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(
            transcript.span)
        request.mac = mac.indices.map { mac[$0] }
        request.signature = device.signing.sign(transcript.span) ?? []
        return request
    }

    /// Revokes as a command does, through another connection and the generation counter; the gate must then
    /// refuse the next request.
    func measureRevocation(
        of ids: [SessionID], directory live: SessionDirectory, keys: ReleaseKeyDirectory, replay: ReplayFile
    ) async throws(OperationalError) -> Double {
        let host = "api.example.com"
        let gate = Gate(
            allowedHosts: AllowedHosts([host]), keys: keys, sessions: live, replay: replay,
            clock: FixedClock(now: start))
        let admin = makeStore(.header)
        defer { admin.close() }
        var times: [Double] = []
        for (number, id) in ids.prefix(50).enumerated() {
            var draft = Draft(method: "GET", target: Array("/".utf8), authority: host)
            let signer = Credentials(
                SessionToken(id: id, epoch: 0), key: SigningKey(device.root.requestKey), release: release.id)
            do {
                try MessageSignatures().sign(
                    &draft, as: signer, at: start, nonce: "revoked\(number)")
            } catch { throw OperationalError(.failed, message: "bench: \(error.detail)") }
            let request = draft.request()
            let recorded = deployment.auditDraft(for: .sessionRevoke, on: .session(id, of: app))
            _ = try admin.end(
                .one(id), with: SessionTermination(.revoked, at: start), recording: recorded)
            deployment.generation.advance()
            let began = SessionBench.seconds(CLOCK_MONOTONIC)
            do throws(Refusal) {
                _ = try await gate.judge(request)
                throw Refusal(.unavailable, detail: "a revoked session was let in")
            } catch {
                guard error.code == .sessionEnded else {
                    throw OperationalError(.failed, message: "bench: \(error.code.name): \(error.detail)")
                }
            }
            times.append((SessionBench.seconds(CLOCK_MONOTONIC) - began) * 1e3)
        }
        return GateBench.median(times)
    }

    private struct FixedClock: TimeSource {
        let now: Int64
    }
}
