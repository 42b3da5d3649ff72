@testable import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc
import Testing

/// An explanation never names a cause for a forgery, never shows a secret, and is never given to unauthorized
/// callers.
@Suite struct ExplanationSafetyTests {
    private let now = Mistaken.now

    /// Each hypothesis can match by chance: with a probability of 2^-128 for form-md5. COUNTERSIGN_FORGERIES
    /// sets the number of forgeries.
    @Test("no cause is named of what was forged", arguments: SchemeName.signing)
    func forged(_ scheme: SchemeName) async throws {
        var random = SplitMix64(seed: 7)
        let count = getenv("COUNTERSIGN_FORGERIES").flatMap { Int(String(cString: $0)) } ?? 48
        for number in 0..<count {
            var mistaken = Mistaken(scheme)
            switch number % 3 {
            case 0:
                let length = scheme == .formMD5 ? 16 : 32
                let guess = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
                mistaken.mac = { _, _ in guess }
            case 1: mistaken.secret = (0..<24).map { _ in UInt8.random(in: 0x21...0x7E, using: &random) }
            default:
                // The signature of a recorded valid request, on another request.
                mistaken.sent.target {
                    $0.replacing("?", with: "\(UInt32.random(in: 0...9999, using: &random))x?")
                }
                mistaken.sent.body {
                    $0.replacing("a", with: "b\(UInt32.random(in: 0...9999, using: &random))")
                }
                mistaken.secret = (0..<24).map { _ in UInt8.random(in: 0x21...0x7E, using: &random) }
            }
            var request = try mistaken.request()
            if number % 2 == 1 { Self.scramble(&request, &random) }
            let explanation = await explain(request, scheme)
            #expect(explanation.verdict != .accepted)
            #expect(explanation.cause == nil, "\(explanation.cause?.code ?? "")")
        }
    }

    /// Flips bits anywhere, the signature's own parameters included.
    private static func scramble(_ request: inout Request, _ random: inout SplitMix64) {
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            if request.body.isEmpty || Bool.random(using: &random) {
                guard let field = request.fields.randomElement(using: &random), !field.value.isEmpty else {
                    continue
                }
                request.head[Int.random(in: field.value.range, using: &random)] ^=
                    1 << UInt8.random(in: 0..<7, using: &random)
            } else {
                request.body[Int.random(in: request.body.indices, using: &random)] ^=
                    1 << UInt8.random(in: 0..<8, using: &random)
            }
        }
    }

    @Test("neither the secret nor the MAC it would make is shown", arguments: SchemeName.signing)
    func keepsSecrets(_ scheme: SchemeName) async throws {
        var wrong = Mistaken(scheme)
        wrong.secret = Array("quite another secret".utf8)
        let right = try Mistaken(scheme).request()
        let mac = try #require(try Self.claim(right, scheme)).mac.array
        for request in [try wrong.request()] + (try Self.mistakes(scheme)) {
            let explanation = await explain(request, scheme)
            let shown = explanation.json().text
            #expect(!shown.contains(Mistaken.secretText))
            #expect(!shown.contains("quite another secret"))
            let sent = try Self.claim(request, scheme)?.mac.array
            if sent != mac {
                for written in [
                    Hex.encode(mac.span), Base64.encode(mac.span, as: .standard),
                    Base64.encode(mac.span, as: .url),
                ] { #expect(!shown.contains(written)) }
            }
            #expect(!shown.contains(Hex.encode(Array(Mistaken.secretText.utf8).span)))
            if scheme == .sigV4 {
                for key in Self.derivedKeys { #expect(!shown.contains(Hex.encode(key.span))) }
            }
            if scheme == .formMD5 {
                #expect(explanation.stages.isEmpty || shown.contains("private_key=<secret>") || sent == nil)
            }
        }
    }

    /// The derived keys of day, region, service and terminator: each of them suffices to sign.
    private static var derivedKeys: [[UInt8]] {
        var key = Array("AWS4\(Mistaken.secretText)".utf8)
        return ["20270115", "countersign", "execute-api", "aws4_request"].map { word in
            key = DiagnosticHash.sha256.hmac(key: key.span, message: Array(word.utf8).span)
            return key
        }
    }

    private static func mistakes(_ scheme: SchemeName) throws -> [Request] {
        try CauseRow.all.filter { $0.scheme == scheme }.map { row in
            var mistaken = Mistaken(scheme)
            row.make(&mistaken)
            return try mistaken.request()
        }
    }

    private static func claim(_ request: Request, _ scheme: SchemeName) throws -> Claim? {
        var workspace = Workspace()
        return try? SchemeRegistry.standard.scheme(named: scheme)?.claim(in: request, workspace: &workspace)
    }

    @Test(
        "a large body costs no more than a small one",
        arguments: [SchemeName.formMD5, .authV4, .messageSignatures])
    func bounded(_ scheme: SchemeName) async throws {
        var mistaken = Mistaken(scheme)
        let filler = String(repeating: "x", count: 900_000)
        mistaken.sent.body {
            scheme == .formMD5 ? "\($0)&big=\(filler)" : $0.replacing("}", with: ",\"big\":\"\(filler)\"}")
        }
        mistaken.seen = mistaken.sent
        mistaken.secret = Array("quite another secret".utf8)
        let request = try mistaken.request()
        let began = ContinuousClock.now
        #expect(await explain(request, scheme).cause == nil)
        #expect(ContinuousClock.now - began < .seconds(60))
    }

    @Test("where requests are served, one that is made to be slow costs no more than its time")
    func timed() async throws {
        var mistaken = Mistaken(.sigV4)
        let pairs = (0..<120).map { "%7a%7A\(999 - $0)" }.joined(separator: "&")
        mistaken.sent.target = Array("/?\(pairs)".utf8)
        mistaken.seen = mistaken.sent
        mistaken.secret = Array("quite another secret".utf8)
        let request = try mistaken.request()
        let began = threadTime()
        #expect(await explain(request, .sigV4).cause == nil)
        let between = threadTime()
        #expect(await explain(request, .sigV4, .atMost(1_000_000)).cause == nil)
        #expect((threadTime() - between) * 8 < between - began)
    }

    /// The processor time of this thread in nanoseconds, which the limit counts too: the machine's other load
    /// has no influence.
    private func threadTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    @Test func aBodyThatGrowsWithoutEndIsNotInflated() throws {
        // Zeros as gzip, 1,051 bytes, by Python's gzip.compress(bytes(n), mtime=0): 1 MiB is read, a byte
        // more is not.
        #expect(
            Inflate.inflate(zeros([0x3E, 0x03], [0x1C, 0xEA, 0x38, 0xA7, 0, 0, 16, 0]), windowBits: 31)?.count
                == 1
                << 20)
        #expect(
            Inflate.inflate(zeros([0x4E, 0x03], [0x28, 0x8B, 0xA4, 0xC6, 1, 0, 16, 0]), windowBits: 31) == nil
        )
        #expect(Inflate.inflate(Array(zeros([0x3E, 0x03], []).dropLast(9)), windowBits: 31) == nil)
    }

    private func zeros(_ end: [UInt8], _ trailer: [UInt8]) -> [UInt8] {
        let start: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 0xFF, 0xED, 0xC1, 0x31, 1, 0, 0, 0, 0xC2, 0xA0, 0xF5, 0x4F, 0x6D,
            8, 0x5F, 0xA0,
        ]
        return start + [UInt8](repeating: 0, count: 1051 - start.count - end.count - 8) + end + trailer
    }

    private func explain(
        _ request: Request, _ scheme: SchemeName, _ time: ExplanationBudget.Time = .untilDone
    ) async -> Explanation {
        var question = Explanation.Question(
            scheme: scheme, keyID: KeyID("r_test"), key: SigningKey(secret(Mistaken.secretText)), at: now)
        question.time = time
        question.others = [KnownKey(of: release("r_second", scheme, "the secret of release 2"))]
        return await Explanation(of: request, question: question)
    }
}

/// The gate's explanations of a refusal, and the callers that receive them.
@Suite struct RefusalExplanationTests {
    private struct Keys: ReleaseSource {
        var all: [AppRelease]

        func release(for id: KeyID) throws(OperationalError) -> AppRelease? {
            all.first { $0.id == id }
        }

        func siblings(of release: AppRelease) throws(OperationalError) -> [AppRelease] {
            all.filter { $0.app == release.app && $0.id != release.id }
        }
    }

    private func explanation(
        of mistaken: Mistaken, _ detail: Policy.RefusalDetail, id: String = "r_test"
    ) async throws -> Explanation? {
        let folder = try Folder()
        let keys = Keys(all: [
            release(id, mistaken.scheme, Mistaken.secretText) { $0.detail = detail },
            release("r_second", mistaken.scheme, "the secret of release 2") { $0.detail = detail },
            release("r_foreign", mistaken.scheme, "the secret of another app", app: "bank"),
        ])
        let gate = Gate(
            allowedHosts: AllowedHosts(["api.example.com:8443"]), keys: keys,
            replay: try ReplayFile(path: folder.path + "/replay", expecting: nil, now: Mistaken.now),
            clock: FixedTime(now: Mistaken.now))
        let request = try mistaken.request()
        let judgement = await gate.judgement(of: request)
        guard let refusal = judgement.refusal else { return nil }
        guard let release = gate.releaseToExplain(for: request, judgement: judgement) else {
            return nil
        }
        return gate.explanation(
            of: refusal, for: request, judgement: judgement, naming: release, within: .untilDone)
    }

    @Test("an app that says debug is told the cause", arguments: SchemeName.signing)
    func debug(_ scheme: SchemeName) async throws {
        var mistaken = Mistaken(scheme)
        mistaken.secret.append(0x0A)
        #expect(try await explanation(of: mistaken, .exact)?.cause?.code == "secret-white-space")
        #expect(try await explanation(of: mistaken, .coarse) == nil)
    }

    @Test(
        "the secret of another release of the app is told, that of another app is not",
        arguments: SchemeName.signing)
    func siblings(_ scheme: SchemeName) async throws {
        var mistaken = Mistaken(scheme)
        mistaken.secret = Array("the secret of release 2".utf8)
        let told = try await explanation(of: mistaken, .exact)?.cause
        #expect(told?.code == "secret-of-another-release")
        #expect(told?.sentence.contains("r_second") == true)
        mistaken.secret = Array("the secret of another app".utf8)
        let foreign = try #require(try await explanation(of: mistaken, .exact))
        #expect(foreign.cause == nil)
        #expect(!foreign.json().text.contains("r_foreign"))
    }

    @Test("of a key id that is not known nothing is said", arguments: SchemeName.signing)
    func unknown(_ scheme: SchemeName) async throws {
        #expect(try await explanation(of: Mistaken(scheme), .exact, id: "r_other") == nil)
    }

    @Test("a key id with white space is found, where the signature holds")
    func whiteSpace() async throws {
        var mistaken = Mistaken(.messageSignatures)
        let change: (String) -> String = { $0.replacing("keyid=\"r_test\"", with: "keyid=\"r_test \"") }
        mistaken.text = change
        mistaken.later = { $0.edit("signature-input", change) }
        #expect(try await explanation(of: mistaken, .exact)?.cause?.code == "key-id-white-space")
        mistaken.secret = Array("quite another secret".utf8)
        #expect(try await explanation(of: mistaken, .exact)?.cause == nil)
    }

    @Test("what holds and is refused all the same is told by the gate's rule")
    func rules() async throws {
        var mistaken = Mistaken(.formMD5)
        mistaken.sent.body { $0 + "&more=1" }
        mistaken.seen = mistaken.sent
        mistaken.at -= 400
        #expect(try await explanation(of: mistaken, .exact)?.cause?.code == "clock-off")
    }
}
