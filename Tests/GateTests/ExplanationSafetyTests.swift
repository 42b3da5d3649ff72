@testable import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import TestRounds
import Testing

/// An explanation never names a cause for a forgery, never shows a secret, and is never given to unauthorized
/// callers.
@Suite struct ExplanationSafetyTests {
    private let now = Mistaken.now

    /// Each hypothesis can match by chance: with a probability of 2^-128 for form-md5.
    @Test("no cause is named of what was forged", arguments: SchemeName.signing)
    func forged(_ scheme: SchemeName) async throws {
        var random = seededRandom()
        let count = rounds(48, short: 6)
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

    /// Requests that are made to be slow to explain.
    private static func costly(_ scheme: SchemeName) throws -> [Request] {
        let filler = String(repeating: "x", count: 200_000)
        let pairs = (0..<120).map { "%7a%7A\(999 - $0)" }.joined(separator: "&")
        let changes: [(inout Draft) -> Void] = [
            { $0.body { scheme == .formMD5 ? "\($0)&big=\(filler)" : "{\"big\":\"\(filler)\"}" } },
            { $0.target = Array("/?\(pairs)".utf8) },
            { $0.target = Array("/\(String(repeating: "%/", count: 1_500))".utf8) },
            { draft in
                for number in 0..<40 { draft.setField("X-\(number)", to: String(repeating: ", ", count: 20)) }
            },
            { draft in
                guard scheme != .formMD5 else { return }
                let depth = scheme == .authV4 ? 30 : 60
                draft.body {
                    "{\"a\":" + String(repeating: "[", count: depth)
                        + Array(repeating: $0, count: 40).joined(separator: ",")
                        + String(repeating: "]", count: depth) + "}"
                }
            },
        ]
        return try changes.map { change in
            var mistaken = Mistaken(scheme)
            change(&mistaken.sent)
            mistaken.seen = mistaken.sent
            mistaken.secret = Array("quite another secret".utf8)
            return try mistaken.request()
        }
    }

    private func search(
        in request: Request, _ scheme: SchemeName, within budget: ExplanationBudget
    ) throws -> ExplanationBudget {
        var question = question(scheme)
        question.budget = budget
        let implementation = try #require(SchemeRegistry.standard.scheme(named: scheme))
        var search = MistakeSearch(in: request, scheme: implementation, question: question)
        #expect(search.cause() == nil)
        return search.budget
    }

    @Test(
        "where requests are served, a search ends with its budget, however the request is made",
        arguments: SchemeName.signing)
    func bounded(_ scheme: SchemeName) throws {
        for request in try Self.costly(scheme) {
            for budget in [ExplanationBudget.operators, .response] {
                let left = try search(in: request, scheme, within: budget)
                #expect(left.work >= 0 && left.work < budget.work)
            }
        }
    }

    @Test("a search without a cause ends where its budget is spent")
    func spent() throws {
        let request = try Self.costly(.sigV4)[1]
        let served = try search(in: request, .sigV4, within: .operators)
        let alone = try search(in: request, .sigV4, within: .command)
        #expect(served.work < ExplanationBudget.operators.work / 10)
        #expect(ExplanationBudget.command.work - alone.work > 4 * ExplanationBudget.operators.work)
    }

    @Test("a correction makes no more than the work that is taken for it", arguments: SchemeName.signing)
    func work(_ scheme: SchemeName) throws {
        let secret = Array(Mistaken.secretText.utf8)
        for request in try Self.costly(scheme) + (try Self.mistakes(scheme)) {
            let draft = Draft(request)
            let input = try Self.input(draft, request, scheme)
            for mistake in Mistake.mistakes(for: scheme) {
                let (made, taken): (Int, Int)
                switch mistake.correction {
                case .request(let undo):
                    made = undo(draft).map { Self.difference($0, from: draft) }.reduce(0, +)
                    taken = mistake.work(on: draft)
                case .repair(let repair):
                    made = repair(draft, scheme).map { Self.difference($0.draft, from: draft) }.reduce(0, +)
                    taken = mistake.work(on: draft)
                case .text(let undo):
                    guard let input, input.text.bytes.count <= ExplanationBudget.largestBody else { continue }
                    made = undo(input).map(\.bytes.count).reduce(0, +)
                    taken = mistake.work(on: input)
                case .mac(let undo):
                    guard let input else { continue }
                    made = undo(input, secret).count * input.text.bytes.count
                    taken = mistake.work(on: input)
                case .secret: continue
                }
                #expect(made <= taken, "\(mistake.code): \(made) of \(taken)")
            }
        }
    }

    /// The bytes of the parts that differ.
    private static func difference(_ draft: Draft, from other: Draft) -> Int {
        let fields = draft.fields.filter { !other.fields.contains($0) }
        return (draft.target == other.target ? 0 : draft.target.count)
            + (draft.body == other.body ? 0 : draft.body.count)
            + fields.map(\.value.count).reduce(0, +)
    }

    private static func input(_ draft: Draft, _ request: Request, _ scheme: SchemeName) throws
        -> SigningInput?
    {
        guard let implementation = SchemeRegistry.standard.scheme(named: scheme) else { return nil }
        var workspace = Workspace()
        guard let claim = try? implementation.claim(in: request, workspace: &workspace),
            (try? implementation.writeStringToSign(for: claim, of: request, into: &workspace)) != nil
        else { return nil }
        return SigningInput(
            scheme: scheme, claim: claim, draft: draft,
            text: SigningString(bytes: workspace.text.bytes.array, secretAt: workspace.text.secretOffset),
            canonicalRequest: [UInt8](implementation.canonicalRequest(in: workspace)))
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

    private func explain(_ request: Request, _ scheme: SchemeName) async -> Explanation {
        await Explanation(of: request, question: question(scheme))
    }

    private func question(_ scheme: SchemeName) -> Explanation.Question {
        var question = Explanation.Question(
            scheme: scheme, keyID: KeyID("r_test"), key: SigningKey(secret(Mistaken.secretText)), at: now)
        question.others = [KnownKey(of: release("r_second", scheme, "the secret of release 2"))]
        return question
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
            of: refusal, for: request, judgement: judgement, naming: release, within: .command)
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
