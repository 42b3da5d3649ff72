import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// What a verdict costs in process: the whole gate, from a parsed request to an admitted caller, the body's digest and
/// the entry in a replay file included. Sockets and the HTTP parser are not.
package struct GateBench: Sendable {
    package struct Figure: Sendable {
        package var scheme: SchemeName
        /// What was measured, in words.
        package var subject: String
        /// CPU time of one verdict: the median over the rounds.
        package var nanoseconds: Double
        /// For one verdict; nil where nothing counts them. ``AllocationCounter`` says how to have them counted.
        package var allocations: Double?
        /// One of the requests that were judged, for peers to be measured on the same.
        package var sample: Sample?
    }

    package struct Sample: Sendable {
        package var request: Draft
        package var keyID: KeyID
        /// Made for this run, and for nothing else.
        package var secret: Secret
    }

    /// Each round judges this many requests that it has not seen before.
    private let requestsARound = 100
    private let now: Int64 = 1_800_000_000

    package init() {}

    package func run() async throws -> [Figure] {
        try await [
            measure(
                .messageSignatures, "12 fields, 512-byte body, digest, replay file", BenchRequests.message),
            measure(
                .messageSignatures, "the same, session", BenchRequests.message, holder: .session),
            measure(.sigV4, "8 fields, 512-byte body, replay file; derived key kept", BenchRequests.amazon),
            measure(
                .sigV4, "the same, each in a region of its own: derived to verify, and to keep", BenchRequests.amazon,
                regions: .newEachTime),
            measure(.formMD5, "8 parameters and sign, replay file", BenchRequests.form),
            measure(.authV1, "8 parameters in the query, 512-byte body, its MD5, replay file", BenchRequests.query),
            measure(.authV2, "8 parameters in a form body", BenchRequests.parameters),
            measure(.authV4, "JSON body of 6 members", BenchRequests.object),
        ] + keyPairs()
    }

    /// sigv4's: whether a derived key can be kept from one request to the next.
    enum Regions { case one, newEachTime }

    /// Whose key signs.
    enum Holder { case release, session }

    func measure(
        _ scheme: SchemeName, _ subject: String, _ draft: (Int) -> Draft, regions: Regions = .one,
        key: SigningKey? = nil, holder: Holder = .release, rounds: Int = 200
    ) async throws -> Figure {
        let path = try GateBench.temporaryPath()
        defer { for suffix in ["", ".lock"] { unlink(path + suffix) } }
        let replay = try ReplayFile(path: path, expecting: nil, now: now)
        try await fill(replay)
        let secret = GateBench.secret()
        var signer = try GateBench.credentials(with: key ?? SigningKey(secret))
        let sessions = try BenchSession(expires: now + 7_200)
        let gate = try GateBench.gate(scheme, signer, sessions, replay, FixedClock(now: now))
        if holder == .session { signer = Credentials(sessions.token, key: sessions.key, release: signer.keyID) }
        guard let writer = Registry.standard.scheme(named: scheme) else { throw Fault(.failed, "bench: no scheme") }

        var times: [Double] = []
        var allocations: [Double] = []
        var sample: Sample?
        let warmUp = 20
        for round in 0..<rounds + warmUp {
            var requests: [Request] = []
            for number in 0..<requestsARound {
                let serial = round * requestsARound + number
                var draft = draft(serial)
                if regions == .newEachTime { signer.region = "region-\(serial)" }
                try writer.sign(&draft, as: signer, at: now, nonce: "bench\(round)x\(number)")
                requests.append(draft.request())
                sample = Sample(request: draft, keyID: signer.keyID, secret: secret)
            }
            let before = AllocationCounter.count
            let start = GateBench.clock()
            for request in requests { _ = try await gate.judge(request) }
            let end = GateBench.clock()
            let after = AllocationCounter.count
            guard round >= warmUp else { continue }
            times.append(Double(end - start) / Double(requestsARound))
            if let before, let after { allocations.append(Double(after - before) / Double(requestsARound)) }
        }
        return Figure(
            scheme: scheme, subject: subject, nanoseconds: GateBench.median(times),
            allocations: allocations.isEmpty ? nil : GateBench.median(allocations),
            sample: key == nil && regions == .one && holder == .release ? sample : nil)
    }

    // MARK: Surroundings

    /// Gives the table the size, and touches the pages, that a gate has which took a thousand requests a second for a
    /// minute: growing is paid for once and is no part of a verdict.
    private func fill(_ replay: ReplayFile) async throws {
        guard let id = KeyID("another-key") else { throw Fault(.failed, "bench: key id") }
        for number in 0..<60_000 {
            let nonce = Array("fill\(number)".utf8)
            guard let key = Claim.ReplayKey(nonce.span) else { continue }
            try await replay.insert(
                ReplayEntry(keyID: id, scheme: .messageSignatures, replayKey: key, created: now, now: now))
        }
    }

    /// Letters only, for peers that take a secret for text.
    private static func secret() -> Secret {
        let random = Secret(random: 32)
        let letters = Array(random.withExposedBytes { Base64.encode($0, .url) }.utf8)
        return Secret(copying: letters.span)
    }

    private static func credentials(with key: SigningKey) throws -> Credentials {
        guard let id = KeyID("8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP") else { throw Fault(.failed, "bench: key id") }
        return Credentials(keyID: id, key: key, platform: "ios", version: "4.2")
    }

    private static func gate(
        _ scheme: SchemeName, _ signer: Credentials, _ sessions: BenchSession, _ replay: ReplayFile,
        _ clock: FixedClock
    ) throws -> Gate {
        var policy = Policy()
        policy.schemes = [scheme]
        let key = ReleaseKey(
            id: signer.keyID, app: "bench", platform: "ios", version: "4.2", scheme: scheme, policy: policy,
            key: signer.key)
        return Gate(
            authorities: Authorities([BenchRequests.host]), keys: OneKey(key: key), sessions: sessions, replay: replay,
            clock: clock)
    }

    private static func temporaryPath() throws(Fault) -> String {
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(folder)/countersign-bench-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else { throw Fault.system(folder, code: errno) }
        close(file)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Only the name was wanted: the replay file is made anew.
        unlink(path)
        return path
    }

    /// CPU time of this thread: other work on the machine is not ours to count.
    static func clock() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    package static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}

private struct FixedClock: TimeSource {
    let now: Int64
}

private struct OneKey: KeySource {
    let key: ReleaseKey

    func key(for id: KeyID) async throws(Fault) -> ReleaseKey? { id == key.id ? key : nil }
}

/// One session that is in use, as memory has it.
final class BenchSession: SessionSource {
    let token: SessionToken
    let key = SigningKey(Secret(random: 32))
    private let session: Session

    init(expires: Int64) throws(Fault) {
        guard let id = SessionID(SystemRandom().bytes(SessionID.count).span) else { throw Fault(.failed, "bench: id") }
        token = SessionToken(id: id, epoch: 3)
        session = Session(
            id: id, kind: .device, epoch: 3, account: AccountIdentity(number: 1, subject: "bench"), app: "bench",
            platform: "ios", expires: expires)
    }

    func session(for token: SessionToken) async throws(Fault) -> (Session, SigningKey)? {
        token == self.token ? (session, key) : nil
    }

    func session(bearing token: Span<UInt8>) async throws(Fault) -> Session? { nil }
    func deviceKey(of id: SessionID) async throws(Fault) -> P256Point? { nil }
    func noteUse(of session: Session, at now: Int64) {}
}
