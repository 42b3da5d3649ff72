@testable import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc
import Testing

@Suite struct ExplanationTests {
    private static let now = Mistaken.now
    private let now = Mistaken.now

    @Test("the mistake that was made is the cause that is named", arguments: CauseRow.all)
    func names(_ row: CauseRow) async throws {
        var mistaken = Mistaken(row.scheme)
        row.make(&mistaken)
        // Each single mistake is found in a response, too; two at once need more hypotheses.
        let explanation = await explain(
            try mistaken.request(), as: row.scheme,
            within: row.cause.contains("+") ? .command : .response)
        #expect(explanation.cause?.code == row.cause)
        #expect(code(explanation) != nil)
        #expect(explanation.cause.map { $0.sentence.isEmpty || $0.remedy.isEmpty } == false)
    }

    @Test func eachMistakeIsTestedInEachSchemeThatItIsPeculiarTo() {
        let tested = Set(CauseRow.all.flatMap { $0.cause.split(separator: "+").map(String.init) })
        #expect(Set(Mistake.all.map(\.code)).subtracting(tested) == [])
        for mistake in Mistake.all where mistake.schemes.count == 1 {
            #expect(
                CauseRow.all.contains {
                    $0.cause.hasPrefix(mistake.code) && mistake.schemes.contains($0.scheme)
                },
                "\(mistake.code)")
        }
    }

    @Test func eachCauseIsDocumented() throws {
        let folder = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let file = try #require(fopen("/\(folder)/docs/explain.md", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&bytes, 1, bytes.count, file)
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        let codes =
            Mistake.all.map(\.code) + CauseRow.all.flatMap { $0.cause.split(separator: "+").map(String.init) }
        #expect(Set(codes).filter { !text.contains("`\($0)`") } == [])
    }

    @Test("an all-zero key is as good as none, and anybody's", arguments: SchemeName.signing)
    func nobodysKeys(_ scheme: SchemeName) async throws {
        for guess in [[], [UInt8](repeating: 0, count: 32), Array("r_test".utf8)] {
            var mistaken = Mistaken(scheme)
            mistaken.secret = guess
            #expect(await explain(try mistaken.request(), as: scheme).cause == nil)
        }
        guard scheme != .formMD5 else { return }
        var mistaken = Mistaken(scheme)
        mistaken.mac = { text, _ in DiagnosticHash.sha256.digest(text.span) }
        #expect(await explain(try mistaken.request(), as: scheme).cause == nil)
    }

    @Test("what holds is accepted, stage by stage", arguments: [SchemeName.messageSignatures, .formMD5])
    func accepted(_ scheme: SchemeName) async throws {
        let explanation = await explain(try Mistaken(scheme).request(), as: scheme)
        #expect(explanation.verdict == .accepted)
        #expect(explanation.cause == nil)
        #expect(explanation.notes == [])
        #expect(explanation.stages.map(\.name).contains("string to sign"))
        #expect(explanation.stages.last?.text == "accepted")
    }

    @Test("what a scheme leaves open is shown beside the request", arguments: SchemeName.signing)
    func notSigned(_ scheme: SchemeName) async throws {
        let stages = await explain(try Mistaken(scheme).request(), as: scheme).stages
        let shown = stages.first { $0.name == "not signed by this scheme" }
        let coverage = try #require(SchemeRegistry.standard.scheme(named: scheme)).coverage
        for part in coverage.uncovered { #expect(shown?.text.contains(part.rawValue) == true) }
        for weakness in coverage.weaknesses { #expect(shown?.text.contains(weakness) == true) }
    }

    @Test func whoAsksAboutTheWrongSchemeIsToldTheRightOne() async throws {
        let explanation = await explain(try Mistaken(.sigV4).request(), as: .messageSignatures)
        #expect(code(explanation) == .unsigned)
        #expect(explanation.stages.last?.text.contains("it looks signed with sigv4") == true)
    }

    @Test("times far out of bounds end in an answer", arguments: [Int64.min, -1, 0, Int64.max])
    func anyTime(_ at: Int64) async throws {
        let question = Explanation.Question(
            scheme: .messageSignatures, keyID: nil, key: SigningKey(secret(Mistaken.secretText)), at: at)
        #expect(
            code(await Explanation(of: try Mistaken(.messageSignatures).request(), question: question))
                == .stale)
    }

    @Test func whatTheGateWouldAskForIsNoted() async throws {
        let notes = await explain(try bare("(\"@method\")"), as: .messageSignatures).notes
        #expect(notes.contains("the signature does not cover \"@path\""))
        #expect(notes.contains("the signature has no \"nonce\" parameter"))
        #expect(!notes.contains("the signature does not cover \"@method\""))
    }

    @Test func anotherKeyID() async throws {
        let question = Explanation.Question(
            scheme: .messageSignatures, keyID: KeyID("r_other"), key: SigningKey(secret(Mistaken.secretText)),
            at: nil)
        #expect(
            code(await Explanation(of: try Mistaken(.messageSignatures).request(), question: question))
                == .unknownKey)
    }

    @Test func theDifferenceIsShown() async throws {
        var mistaken = Mistaken(.messageSignatures)
        mistaken.seen.target { $0.replacing("a%20b/c%2Fd", with: "a b/c/d") }
        let difference = try #require(
            await explain(try mistaken.request(), as: .messageSignatures).cause?.difference)
        #expect(difference.component == "\"@path\"")
        #expect(difference.signed == "\"@path\": /a b/c/d/")
        #expect(difference.received == "\"@path\": /a%20b/c%2Fd/")
        #expect(difference.line == 3)
        #expect(difference.byte == 12)
    }

    private func bare(_ list: String) throws -> Request {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        draft.setField("Signature-Input", to: "s=\(list);created=\(now);keyid=\"r_test\"")
        draft.setField("Signature", to: "s=:AAAA:")
        return draft.request()
    }

    @Test(
        "curl 7.88 signs a query as it stands, and its user may be mistaken in the secret",
        arguments: [
            (Mistaken.secretText + " ", "secret-white-space"),
            ("the secret of release 2", "secret-of-another-release"),
            ("a secret of nobody", nil),
        ])
    func anotherSpelling(_ row: (secret: String, cause: String?)) async throws {
        var draft = Draft(method: "GET", target: Array("/orders?z=1&a=2".utf8), authority: "api.example.com")
        let key = SigningKey(secret(row.secret))
        try SigV4().sign(
            &draft, as: Credentials(keyID: try #require(KeyID("r_test")), key: key), at: now, nonce: "")
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try SigV4().claim(in: request, workspace: &workspace))
        try SigV4().writeStringToSign(for: claim, of: request, into: &workspace)
        let standard = Hex.encode(key.mac(.sigV4, of: workspace.text).span)
        #expect(try SigV4().writeAlternative(0, for: claim, of: request, into: &workspace) == .written)
        let asWritten = Hex.encode(key.mac(.sigV4, of: workspace.text).span)
        #expect(standard != asWritten)
        let field = try #require(draft.fields.first { $0.name == "Authorization" })
        let value = String(decoding: field.value, as: UTF8.self)
        draft.setField("Authorization", to: value.replacing(standard, with: asWritten))
        #expect(await explain(draft.request(), as: .sigV4).cause?.code == row.cause)
    }

    private func explain(
        _ request: Request, as scheme: SchemeName, within budget: ExplanationBudget = .command
    ) async -> Explanation {
        var question = Explanation.Question(
            scheme: scheme, keyID: KeyID("r_test"), key: SigningKey(secret(Mistaken.secretText)), at: now)
        question.others = [KnownKey(of: release("r_second", scheme, "the secret of release 2"))].compactMap {
            $0
        }
        question.budget = budget
        return await Explanation(of: request, question: question)
    }

    private func code(_ explanation: Explanation) -> Refusal.Code? {
        if case .refused(let refusal) = explanation.verdict { refusal.code } else { nil }
    }
}

/// A release of the app `shop`.
func release(
    _ id: String, _ scheme: SchemeName, _ text: String, app: String = "shop",
    policy change: (inout Policy) -> Void = { _ in }
) -> AppRelease {
    var policy = Policy()
    policy.schemes = [scheme]
    change(&policy)
    guard let id = KeyID(id) else { preconditionFailure("a key id of a test") }
    return AppRelease(
        id: id, app: app, platform: "ios", version: "1.0", scheme: scheme, policy: policy,
        key: SigningKey(secret(text))
    )
}
