import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// What a million sessions cost: memory, the time to read them at the start, a key's first use, a refresh, and how soon a
/// revocation is heeded. Over a store on disk, with all that a server has around it but sockets.
package struct SessionBench {
    package struct Figures: Sendable {
        package var sessions: Int
        /// From a file that is closed to a gate that knows them all, every page looked at: by the clock, and of a core's time, which
        /// is what it takes where nobody else works.
        package var loadSeconds: Double
        package var loadCPUSeconds: Double
        /// Resident memory that this took.
        package var mebibytes: Double
        /// CPU time of a token's first use, with unsealing; and of the next one.
        package var firstUseNanoseconds: Double
        package var nextUseNanoseconds: Double
        /// By the CPU time of all threads together, the writer's and the disk's cache included: what one core does.
        package var refreshesPerSecond: Double
        /// From the return of the command that revokes to the refusal of the very next request.
        package var revocationMilliseconds: Double
    }

    static let start: Int64 = 1_800_000_000
    static let refreshes = 2_000

    let deployment: Deployment
    let makeStore: () -> any Store
    let device: BenchDevice
    let app: AppName
    let release: Release

    /// `deployment` is one of its own, in a folder that is thrown away; `makeStore` opens another connection to its store.
    package init(_ deployment: Deployment, makeStore: @escaping () -> any Store) throws(Fault) {
        guard let app = AppName("bench"), let platform = Platform("ios"), let version = Version("1.0"),
            let id = KeyID("r_bench")
        else { throw Fault(.failed, "bench: names") }
        self.deployment = deployment
        self.makeStore = makeStore
        self.app = app
        device = try BenchDevice()
        _ = try deployment.addApp(
            app, settings: ["slots=unlimited", "token-lifetime=24h"], requiring: .signed, at: SessionBench.start)
        let draft = ReleaseDraft(
            app: app, platform: platform, version: version, scheme: .messageSignatures, id: id,
            secret: Secret(random: 32))
        release = try deployment.addRelease(draft, at: SessionBench.start).release
    }

    /// `progress` is told how far it is, in words.
    nonisolated(nonsending) package func run(
        sessions count: Int, progress: (String) -> Void
    ) async throws(Fault) -> Figures {
        let ids = try fill(count, progress)
        progress("reading them")
        SessionBench.giveBackMemory()
        let before = try SessionBench.residentBytes()
        let began = (clock: SessionBench.seconds(CLOCK_MONOTONIC), core: SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID))
        let keys = try LiveKeys(deployment)
        let writer = try GroupWriter(makeStore())
        let live = try LiveSessions(deployment, keys, reader: makeStore(), writer: writer)
        let loadSeconds = SessionBench.seconds(CLOCK_MONOTONIC) - began.clock
        let loadCPUSeconds = SessionBench.seconds(CLOCK_PROCESS_CPUTIME_ID) - began.core
        let mebibytes = Double(try SessionBench.residentBytes() - before) / 1_048_576
        guard live.counts.all == count else { throw Fault(.failed, "bench: \(live.counts.all) sessions in memory") }
        progress("measuring")
        let uses = try measureUses(of: ids, live)
        let replay = try ReplayFile(path: deployment.folder.replay, expecting: nil, now: SessionBench.start)
        let life = SessionLife(deployment, live, writer: writer, replay: replay)
        let rate = try await measureRefreshes(of: ids, life, keys)
        let revocation = try await measureRevocation(of: ids, live, keys, replay)
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

    /// What was freed while the store was filled would otherwise be taken again, and not seen to grow. Source: malloc_trim(3),
    /// which the C library's module leaves out.
    private static func giveBackMemory() {
        typealias Trim = @convention(c) (Int) -> CInt
        guard let symbol = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(symbol, to: Trim.self)(0)
    }

    /// Source: proc(5), `/proc/self/statm`: the second figure, in pages.
    private static func residentBytes() throws(Fault) -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { throw Fault(.failed, "/proc/self/statm: cannot open") }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, 256, file) != nil else { throw Fault(.failed, "/proc/self/statm: cannot read") }
        let figures = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).split(
            separator: " ")
        guard figures.count > 1, let pages = Int(figures[1]) else {
            throw Fault(.failed, "/proc/self/statm: no figures")
        }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }
}

/// The one device that all of the bench's sessions are bound to: what is measured is the server's side.
struct BenchDevice: Sendable {
    let signing: PrivateKey
    let signingPoint: [UInt8]
    let agreementPoint: [UInt8]
    let root = SessionRoot(secret: Secret(random: SessionRoot.count))

    init() throws(Fault) {
        guard let signing = try? PrivateKey(random: .ecdsaP256),
            let point = P256Point(subjectPublicKeyInfo: signing.publicKey.der), let agreement = try? AgreementKey()
        else { throw Fault(.failed, "bench: no keys on P-256") }
        self.signing = signing
        signingPoint = point.bytes
        agreementPoint = agreement.publicPoint.bytes
    }
}
