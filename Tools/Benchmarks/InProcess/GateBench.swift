import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// Measures the in-process cost of a verdict: the whole gate, from a parsed request to an admitted caller,
/// including the body's digest and the entry in a replay file. Sockets and the HTTP parser are not included.
package struct GateBench: Sendable {
    package struct Figure: Sendable {
        package var scheme: SchemeName
        /// What was measured, in words.
        package var subject: String
        /// CPU time of one verdict: the median over the rounds.
        package var nanoseconds: Double
        /// For one verdict; nil if no counter is loaded, see ``AllocationCounter``.
        package var allocations: Double?
        /// One of the judged requests, so that other implementations can be measured with the same request.
        package var sample: Sample?
    }

    package struct Sample: Sendable {
        package var request: Draft
        package var keyID: KeyID
        /// Generated for this run only.
        package var secret: Secret
    }

    /// Each round judges this many requests that it has not seen before.
    private let requestsARound = 100
    private let now: Int64 = 1_800_000_000

    package init() {}

    package func run() async throws -> [Figure] {
        try await [
            measure(
                .messageSignatures, subject: "12 fields, 512-byte body, digest, replay file",
                draft: BenchRequests.message),
            measure(
                .messageSignatures, subject: "the same, session", draft: BenchRequests.message,
                holder: .session),
            hashes(),
            measure(
                .sigV4, subject: "8 fields, 512-byte body, replay file; derived key kept",
                draft: BenchRequests.amazon),
            measure(
                .sigV4, subject: "the same, each in a region of its own: derived to verify, and to keep",
                draft: BenchRequests.amazon,
                regions: .newEachTime),
            measure(.formMD5, subject: "8 parameters and sign, replay file", draft: BenchRequests.form),
            measure(
                .authV1, subject: "8 parameters in the query, 512-byte body, its MD5, replay file",
                draft: BenchRequests.query),
            measure(.authV2, subject: "8 parameters in a form body", draft: BenchRequests.parameters),
            measure(.authV4, subject: "JSON body of 6 members", draft: BenchRequests.object),
        ] + keyPairs()
    }

    /// For sigv4: whether a derived key can be reused for the next request.
    enum Regions { case one, newEachTime }

    /// Whose key signs.
    enum Holder { case release, session }

    func measure(
        _ scheme: SchemeName, subject words: String, draft: @escaping (Int) -> Draft, regions: Regions = .one,
        key: SigningKey? = nil, holder: Holder = .release, rounds: Int = 200
    ) async throws -> Figure {
        let secret = GateBench.secret()
        let subject = try await Subject(
            scheme, draft: draft, key: key ?? SigningKey(secret), holder: holder, regions: regions, now: now)
        var times: [Double] = []
        var allocations: [Double] = []
        var sample: Sample?
        let warmUp = 20
        for round in 0..<rounds + warmUp {
            let drafts = try subject.drafts(count: requestsARound)
            let requests = drafts.map { $0.request() }
            sample = drafts.last.map { Sample(request: $0, keyID: subject.signer.keyID, secret: secret) }
            let before = AllocationCounter.count
            let start = GateBench.clock()
            let isMeasured = try await GateBench.judgeEach(requests, by: subject.gate)
            let end = GateBench.clock()
            let after = AllocationCounter.count
            guard round >= warmUp, isMeasured else { continue }
            times.append(Double(end - start) / Double(requestsARound))
            if let before, let after { allocations.append(Double(after - before) / Double(requestsARound)) }
        }
        return Figure(
            scheme: scheme, subject: words, nanoseconds: GateBench.median(times),
            allocations: allocations.isEmpty ? nil : GateBench.median(allocations),
            sample: key == nil && regions == .one && holder == .release ? sample : nil)
    }

    /// False if the replay file had to grow meanwhile, for which a request waits: no time was measured then.
    static func judgeEach(_ requests: [Request], by gate: Gate) async throws -> Bool {
        var isMeasured = true
        for request in requests {
            guard let waiting = try judgeOnce(request, by: gate) else { continue }
            isMeasured = false
            _ = try await gate.judgeAfterWaiting(
                request, recordingIn: waiting, from: { [] }, for: .backend)
            gate.endJudgement(waiting)
        }
        return isMeasured
    }

    /// The judgement if the request has to wait. A profiler counts the instructions of this function: see
    /// `Tools/Benchmarks/verdicts.py`.
    @inline(never)
    private static func judgeOnce(_ request: Request, by gate: Gate) throws -> Judgement? {
        let judgement = gate.beginJudgement()
        guard try gate.judgeIfReady(request, recordingIn: judgement) != nil else { return judgement }
        gate.endJudgement(judgement)
        return nil
    }

    /// CPU time of this thread, which excludes other work on the machine.
    static func clock() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    package static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}

/// The kinds of request whose judgement a profiler can count, see `Tools/Benchmarks/verdicts.py`.
extension GateBench {
    package enum Case: String, CaseIterable, Sendable {
        case get, post, session, ed25519
        case p256 = "ecdsa-p256"
        case formMD5 = "form-md5"
        case authV1 = "auth-v1"
        case authV2 = "auth-v2"
        case authV4 = "auth-v4"
        case sigV4 = "sigv4"
    }

    /// Judges `rounds` times as many requests as a round of ``run()`` has, after two rounds to warm up.
    package func judge(_ kind: Case, rounds: Int) async throws {
        let subject = try await subject(kind)
        for _ in 0..<2 { try GateBench.warmUp(subject.requests(count: requestsARound), by: subject.gate) }
        for _ in 0..<rounds {
            _ = try await GateBench.judgeEach(subject.requests(count: requestsARound), by: subject.gate)
        }
    }

    /// The same as ``judgeEach(_:by:)``, which a profiler does not count.
    @inline(never)
    private static func warmUp(_ requests: [Request], by gate: Gate) throws {
        for request in requests {
            let judgement = gate.beginJudgement()
            _ = try gate.judgeIfReady(request, recordingIn: judgement)
            gate.endJudgement(judgement)
        }
    }

    private func subject(_ kind: Case) async throws -> Subject {
        let secret = SigningKey(GateBench.secret())
        switch kind {
        case .get:
            return try await Subject(.messageSignatures, draft: BenchRequests.get, key: secret, now: now)
        case .post:
            return try await Subject(.messageSignatures, draft: BenchRequests.message, key: secret, now: now)
        case .session:
            return try await Subject(
                .messageSignatures, draft: BenchRequests.get, key: secret, holder: .session, now: now)
        case .ed25519, .p256:
            let pair = try PrivateKey(random: kind == .p256 ? .ecdsaP256 : .ed25519)
            return try await Subject(
                .messageSignatures, draft: BenchRequests.get, key: SigningKey(pair), now: now)
        case .formMD5: return try await Subject(.formMD5, draft: BenchRequests.form, key: secret, now: now)
        case .authV1: return try await Subject(.authV1, draft: BenchRequests.query, key: secret, now: now)
        case .authV2:
            return try await Subject(.authV2, draft: BenchRequests.parameters, key: secret, now: now)
        case .authV4: return try await Subject(.authV4, draft: BenchRequests.object, key: secret, now: now)
        case .sigV4: return try await Subject(.sigV4, draft: BenchRequests.amazon, key: secret, now: now)
        }
    }
}

/// A gate, and a signer of requests that it admits.
private final class Subject {
    private(set) var signer: Credentials
    let gate: Gate
    private let writer: any Scheme
    private let draft: (Int) -> Draft
    private let regions: GateBench.Regions
    private let path: String
    private let now: Int64
    private var serial = 0

    init(
        _ scheme: SchemeName, draft: @escaping (Int) -> Draft, key: SigningKey,
        holder: GateBench.Holder = .release, regions: GateBench.Regions = .one, now: Int64
    ) async throws {
        guard let writer = SchemeRegistry.standard.scheme(named: scheme) else {
            throw OperationalError(.failed, message: "bench: no scheme")
        }
        self.writer = writer
        self.draft = draft
        self.regions = regions
        self.now = now
        path = try Subject.temporaryPath()
        let replay = try ReplayFile(path: path, expecting: nil, now: now)
        try await Subject.fill(replay, now: now)
        let signer = try Subject.credentials(with: key)
        let sessions = try BenchSession(expires: now + 7_200)
        gate = try Subject.makeGate(
            scheme: scheme, signer: signer, sessions: sessions, replay: replay, clock: FixedClock(now: now))
        self.signer =
            holder == .release
            ? signer : Credentials(sessions.token, key: sessions.key, release: signer.keyID)
    }

    deinit { for suffix in ["", ".lock"] { unlink(path + suffix) } }

    /// Signed requests that the gate has not seen before.
    func drafts(count: Int) throws -> [Draft] {
        try (0..<count).map { _ in
            var draft = draft(serial)
            if regions == .newEachTime { signer.region = "region-\(serial)" }
            try writer.sign(&draft, as: signer, at: now, nonce: "benchmark\(1_000_000 + serial)x")
            serial += 1
            return draft
        }
    }

    func requests(count: Int) throws -> [Request] { try drafts(count: count).map { $0.request() } }

    /// Grows the table to the size that it has after a minute with a thousand requests a second, and touches
    /// its pages: growth happens once and is no part of a verdict.
    private static func fill(_ replay: ReplayFile, now: Int64) async throws {
        guard let id = KeyID("another-key") else { throw OperationalError(.failed, message: "bench: key id") }
        for number in 0..<60_000 {
            let nonce = Array("fill\(number)".utf8)
            guard let key = Claim.ReplayKey(nonce.span) else { continue }
            try await replay.insert(
                ReplayEntry(keyID: id, scheme: .messageSignatures, replayKey: key, created: now, now: now))
        }
    }

    private static func credentials(with key: SigningKey) throws -> Credentials {
        guard let id = KeyID("8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP") else {
            throw OperationalError(.failed, message: "bench: key id")
        }
        return Credentials(keyID: id, key: key, platform: "ios", version: "4.2")
    }

    private static func makeGate(
        scheme: SchemeName, signer: Credentials, sessions: BenchSession, replay: ReplayFile,
        clock: FixedClock
    ) throws -> Gate {
        var policy = Policy()
        policy.schemes = [scheme]
        let key = AppRelease(
            id: signer.keyID, app: "bench", platform: "ios", version: "4.2", scheme: scheme, policy: policy,
            key: signer.key)
        return Gate(
            allowedHosts: AllowedHosts([BenchRequests.host]), keys: OneKey(key: key), sessions: sessions,
            replay: replay,
            clock: clock)
    }

    private static func temporaryPath() throws(OperationalError) -> String {
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(folder)/countersign-bench-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else { throw OperationalError.system(folder, code: errno) }
        close(file)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Only the name is needed; the replay file is created anew.
        unlink(path)
        return path
    }
}

extension GateBench {
    /// Letters only, for implementations that treat a secret as text.
    private static func secret() -> Secret {
        let random = Secret(random: 32)
        let letters = Array(random.withExposedBytes { Base64.encode($0, as: .url) }.utf8)
        return Secret(copying: letters.span)
    }
}

private struct FixedClock: TimeSource {
    let now: Int64
}

private struct OneKey: ReleaseSource {
    let key: AppRelease

    /// As with the server's own source, nothing changes between two requests.
    var generation: ReleaseGeneration? { ReleaseGeneration(store: 0, memory: 0) }

    func release(for id: KeyID) throws(OperationalError) -> AppRelease? { id == key.id ? key : nil }
}

/// One session in use, held in memory.
final class BenchSession: SessionSource {
    let token: SessionToken
    let key = SigningKey(Secret(random: 32))
    private let session: Session

    init(expires: Int64) throws(OperationalError) {
        guard let id = SessionID(SystemRandom().bytes(SessionID.count).span) else {
            throw OperationalError(.failed, message: "bench: id")
        }
        token = SessionToken(id: id, epoch: 3)
        session = Session(
            id: id, kind: .device, epoch: 3,
            account: AccountIdentity(number: 1, userID: nil, escapedName: "bench"),
            app: "bench",
            platform: "ios", expires: expires)
    }

    func session(for token: SessionToken) throws(OperationalError) -> (Session, SigningKey)? {
        token == self.token ? (session, key) : nil
    }

    func session(bearing token: Span<UInt8>) throws(OperationalError) -> Session? { nil }
    func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point? { nil }
    func noteUse(of session: Session, at now: Int64) {}
}

/// Measures a verdict on a key pair's signature, and the library call that takes most of that time.
extension GateBench {
    func keyPairs() async throws -> [Figure] {
        var figures: [Figure] = []
        for algorithm in [KeyAlgorithm.ed25519, .ecdsaP256] {
            let pair = try PrivateKey(random: algorithm)
            figures.append(
                try await measure(
                    .messageSignatures, subject: "\(algorithm.rawValue): the same request",
                    draft: BenchRequests.message,
                    key: SigningKey(pair), rounds: 60))
            figures.append(try bare(pair))
        }
        return figures
    }

    /// As long as the signature base of the judged request.
    private static let base = [UInt8](repeating: UInt8(ascii: "b"), count: 700)

    /// What no verdict on the request can go without: the digest of its body, and the MAC of its base.
    private func hashes() -> Figure {
        let body = [UInt8](repeating: UInt8(ascii: "c"), count: 512)
        let key = HMACSHA256(key: GateBench.base.span.extracting(0..<32))
        var sum: UInt8 = 0
        let (nanoseconds, allocations) = measureCalls { index in
            sum ^= SHA256.digest(body.span)[index % 32] ^ key.authenticate(GateBench.base.span)[index % 32]
        }
        GateBench.use(sum)
        return Figure(
            scheme: .messageSignatures, subject: "the body's SHA-256 and the base's HMAC alone",
            nanoseconds: nanoseconds, allocations: allocations)
    }

    /// Keeps the compiler from leaving out what computes the value.
    @_optimize(none) private static func use(_ value: UInt8) {}

    /// CPU time and allocations of one call: medians of sixty rounds of a hundred.
    private func measureCalls(_ call: (Int) throws -> Void) rethrows -> (
        nanoseconds: Double, allocations: Double?
    ) {
        var times: [Double] = []
        var allocations: [Double] = []
        for _ in 0..<60 {
            let before = AllocationCounter.count
            let start = GateBench.clock()
            for index in 0..<100 { try call(index) }
            times.append(Double(GateBench.clock() - start) / 100)
            if let before, let after = AllocationCounter.count {
                allocations.append(Double(after - before) / 100)
            }
        }
        return (GateBench.median(times), allocations.isEmpty ? nil : GateBench.median(allocations))
    }

    private func bare(_ pair: PrivateKey) throws -> Figure {
        let message = GateBench.base
        guard let signature = pair.sign(message.span),
            let call = VerificationBaseline(pair.publicKey, signature: signature, of: message)
        else {
            throw OperationalError(.failed, message: "bench: no bare call for \(pair.algorithm.rawValue)")
        }
        let (nanoseconds, allocations) = try measureCalls { _ in
            guard call.run() == .equal else {
                throw OperationalError(
                    .failed, message: "bench: the bare call for \(pair.algorithm.rawValue) does not verify")
            }
        }
        return Figure(
            scheme: .messageSignatures, subject: "\(pair.algorithm.rawValue): the bare library call",
            nanoseconds: nanoseconds, allocations: allocations)
    }
}

/// Counts calls of the C allocator, which Swift's allocator uses too. They can only be counted from outside:
/// preload a library that wraps `malloc`, `calloc`, `realloc` and `aligned_alloc` and exports the function
/// `countersign_allocations`, as `Tools/Benchmarks/allocations.c` does.
package enum AllocationCounter {
    private typealias Read = @convention(c) () -> UInt64

    private static let read: Read? = dlsym(nil, "countersign_allocations").map {
        unsafeBitCast($0, to: Read.self)
    }

    /// Calls so far; nil if no counter is loaded.
    package static var count: UInt64? { read.map { $0() } }
}
