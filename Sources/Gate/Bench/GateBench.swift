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
    private let rounds = 200

    package init() {}

    package func run() async throws -> [Figure] {
        [
            try await measure(
                .messageSignatures, "12 fields, 512-byte body, digest, replay file", GateBench.message),
            try await measure(.sigV4, "8 fields, 512-byte body, replay file; derived key kept", GateBench.amazon),
            try await measure(
                .sigV4, "the same, each in a region of its own: derived to verify, and to keep", GateBench.amazon,
                regions: .newEachTime),
            try await measure(.formMD5, "8 parameters and sign, replay file", GateBench.form),
            try await measure(.authV1, "8 parameters in the query, 512-byte body, its MD5, replay file", GateBench.query),
            try await measure(.authV2, "8 parameters in a form body", GateBench.parameters),
            try await measure(.authV4, "JSON body of 6 members", GateBench.object),
        ]
    }

    /// sigv4's: whether a derived key can be kept from one request to the next.
    private enum Regions { case one, newEachTime }

    private func measure(
        _ scheme: SchemeName, _ subject: String, _ draft: (Int) -> Draft, regions: Regions = .one
    ) async throws -> Figure {
        let now: Int64 = 1_800_000_000
        let path = try GateBench.temporaryPath()
        defer { for suffix in ["", ".lock"] { unlink(path + suffix) } }
        let replay = try ReplayFile(path: path, expecting: nil, now: now)
        var signer = try GateBench.credentials(for: scheme)
        let gate = try GateBench.gate(scheme, signer, replay, FixedClock(now: now))
        let writer = Registry.standard.scheme(named: scheme)

        var times: [Double] = []
        var allocations: [Double] = []
        // The first rounds touch the table's pages, as a gate that has run for a while has.
        let warmUp = 100
        for round in 0..<rounds + warmUp {
            var requests: [Request] = []
            for number in 0..<requestsARound {
                let serial = round * requestsARound + number
                var draft = draft(serial)
                if regions == .newEachTime { signer.region = "region-\(serial)" }
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

    private static func message(_ number: Int) -> Draft {
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

    /// Without a nonce, requests of one second differ by what they ask for.
    private static func amazon(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/v2/orders/\(number)/items?expand=prices&page=2".utf8), authority: host)
        draft.set("User-Agent", "Shop/4.2 (iPhone; iOS 19.1)")
        draft.set("Accept", "application/json")
        draft.set("Content-Type", "application/json")
        draft.body = [UInt8](repeating: UInt8(ascii: "b"), count: 512)
        // With Host, Content-Length, X-Amz-Date, X-Amz-Content-Sha256 and Authorization: eight.
        return draft
    }

    private static func form(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items.php".utf8), authority: host)
        draft.body = Array("userId=3670537&token=MtYiX1qRWzXF6bEKTi7LlVKJwXZrwRWGcjiBUvSY&phoneNo=0791234567".utf8)
        return draft
    }

    private static func query(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/apps/3/events?userId=3670537&page=2&phoneNo=0791234567".utf8), authority: host)
        draft.set("Content-Type", "application/json")
        // Its signature is what the request is remembered by, so no two are alike.
        draft.body = Array("\(UInt64.random(in: 0...UInt64.max))".utf8) + [UInt8](repeating: UInt8(ascii: "b"), count: 492)
        return draft
    }

    private static func parameters(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items".utf8), authority: host)
        draft.set("Content-Type", "application/x-www-form-urlencoded")
        draft.body = Array("userId=3670537&page=2&phoneNo=0791234567&city=Z%C3%BCrich".utf8)
        return draft
    }

    private static func object(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items?page=2".utf8), authority: host)
        draft.set("Content-Type", "application/json")
        draft.body = Array(
            #"{"userId":3670537,"city":"Z\u00fcrich","tags":["a","b"],"phoneNo":"0791234567","new":true,"note":null}"#.utf8)
        return draft
    }

    private static let host = "api.example.com"

    // MARK: Surroundings

    private static func credentials(for scheme: SchemeName) throws -> Credentials {
        guard let id = KeyID("8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP") else { throw Fault(.failed, "bench: key id") }
        return Credentials(keyID: id, key: SigningKey(Secret(random: 32)), platform: "ios", version: "4.2")
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
    private static func clock() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}

private struct FixedClock: TimeSource {
    let now: Int64
}

private struct OneKey: KeySource {
    let key: ReleaseKey

    func key(for id: KeyID) async throws(Fault) -> ReleaseKey? { id == key.id ? key : nil }
}
