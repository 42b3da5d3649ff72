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
    }

    /// Each round judges this many requests that it has not seen before.
    private let requestsARound = 100

    package init() {}

    package func run() async throws -> [Figure] {
        try await [
            measure(
                .messageSignatures, "12 fields, 512-byte body, digest, replay file", GateBench.message),
            measure(.formMD5, "8 parameters and sign, replay file", GateBench.form),
        ] + keyPairs()
    }

    func measure(
        _ scheme: SchemeName, _ subject: String, _ draft: (Int) -> Draft,
        key: SigningKey = SigningKey(Secret(random: 32)), rounds: Int = 200
    ) async throws -> Figure {
        let now: Int64 = 1_800_000_000
        let path = try GateBench.temporaryPath()
        defer { for suffix in ["", ".lock"] { unlink(path + suffix) } }
        let replay = try ReplayFile(path: path, expecting: nil, now: now)
        let signer = try GateBench.credentials(with: key)
        let gate = try GateBench.gate(scheme, signer, replay, FixedClock(now: now))
        let writer = Registry.standard.scheme(named: scheme)

        var times: [Double] = []
        var allocations: [Double] = []
        // The first rounds touch the table's pages, as a gate that has run for a while has.
        let warmUp = 100
        for round in 0..<rounds + warmUp {
            var requests: [Request] = []
            for number in 0..<requestsARound {
                var draft = draft(number)
                try writer?.sign(&draft, as: signer, at: now, nonce: "bench\(round)x\(number)")
                requests.append(draft.request())
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
            allocations: allocations.isEmpty ? nil : GateBench.median(allocations))
    }

    // MARK: What is judged

    static func message(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/v2/orders/4711/items?expand=prices&page=2".utf8), authority: host)
        draft.set("User-Agent", "Shop/4.2 (iPhone; iOS 19.1)")
        draft.set("Accept", "application/json")
        draft.set("Accept-Encoding", "gzip, br")
        draft.set("Accept-Language", "de-CH, de;q=0.9, en;q=0.8")
        draft.set("Content-Type", "application/json")
        draft.set("Idempotency-Key", "5d0f6f0e-9d8b-4f6e-8d6c-1f1b7c6c8a11")
        draft.body = [UInt8](repeating: UInt8(ascii: "b"), count: 512)
        // With Host, Content-Length, Content-Digest, Countersign-Release, Signature-Input and Signature: twelve.
        return draft
    }

    private static func form(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items.php".utf8), authority: host)
        draft.body = Array("userId=3670537&token=MtYiX1qRWzXF6bEKTi7LlVKJwXZrwRWGcjiBUvSY&phoneNo=0791234567".utf8)
        return draft
    }

    private static let host = "api.example.com"

    // MARK: Surroundings

    private static func credentials(with key: SigningKey) throws -> Credentials {
        guard let id = KeyID("8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP") else { throw Fault(.failed, "bench: key id") }
        return Credentials(keyID: id, key: key, platform: "ios", version: "4.2")
    }

    private static func gate(
        _ scheme: SchemeName, _ signer: Credentials, _ replay: ReplayFile, _ clock: FixedClock
    ) throws -> Gate {
        var policy = Policy()
        policy.schemes = [scheme]
        let key = ReleaseKey(
            id: signer.keyID, app: "bench", platform: "ios", version: "4.2", scheme: scheme, policy: policy,
            key: signer.key)
        return Gate(authorities: Authorities([host]), keys: OneKey(key: key), replay: replay, clock: clock)
    }

    private static func temporaryPath() throws(Fault) -> String {
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(folder)/countersign-bench-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else { throw Fault.system(folder, errno) }
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

    static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}

private struct FixedClock: TimeSource {
    let now: Int64
}

private struct OneKey: KeySource {
    let key: ReleaseKey

    func key(for id: KeyID) async throws(Fault) -> ReleaseKey? { id == key.id ? key : nil }
}
