import CountersignSchemes
import CountersignSeal
import CountersignWire
import TestRounds
import Testing

/// Two requests that differ in meaning never share a string to sign. Requests are drawn from so few words,
/// full of the marks that the formats use themselves, that any ambiguity would be met many times over;
/// form-md5, which is known to be ambiguous, shows that the search finds one.
@Suite struct InjectivityTests {
    @Test("no two meanings share a string to sign", arguments: [MessageSignatures()] as [any Scheme])
    func oneMeaning(_ scheme: any Scheme) throws {
        let (meanings, collisions) = try search(scheme)
        #expect(meanings > 5_000, "too few different requests were drawn: \(meanings)")
        #expect(collisions.isEmpty, "\(scheme.name.rawValue): \(collisions.first ?? "")")
    }

    @Test func theSearchFindsWhatIsKnown() throws {
        #expect(try !search(FormMD5()).collisions.isEmpty)
    }

    private func search(_ scheme: any Scheme) throws -> (meanings: Int, collisions: [String]) {
        var random = seededRandom()
        var meaningOf: [String: String] = [:]
        var collisions: [String] = []
        for _ in 0..<rounds(20_000) {
            let draft = Draw.request(for: scheme.name, &random)
            var signed = draft
            try scheme.sign(&signed, as: Draw.credentials(), at: 1_800_000_000, nonce: "aaaaaaaaaaaaaaaa")
            let request = signed.request()
            var workspace = Workspace()
            let claim = try #require(try scheme.claim(in: request, workspace: &workspace))
            try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
            let text = workspace.text.displayText
            let meaning = Draw.meaning(of: draft, for: scheme.name)
            if let other = meaningOf.updateValue(meaning, forKey: text), other != meaning {
                collisions.append("\(other) and \(meaning) are both spelled \(text)")
            }
        }
        return (Set(meaningOf.values).count, collisions)
    }
}

private enum Draw {
    static func credentials() throws -> Credentials {
        let bytes = Array("secret".utf8)
        return Credentials(
            keyID: try #require(KeyID("k")), key: SigningKey(Secret(copying: bytes.span)), platform: "ios",
            version: "1")
    }

    static func request(for scheme: SchemeName, _ random: inout some RandomNumberGenerator) -> Draft {
        func one(_ words: [String]) -> String { words.randomElement(using: &random) ?? "" }
        if scheme == .formMD5 {
            let values = ["1", "1&y=2", "2", ""]
            var draft = Draft(method: "POST", target: Array("/".utf8), authority: "a")
            // Behind all base names, which would come between.
            for name in ["x", "y", "z"].shuffled(using: &random).prefix(Int.random(in: 1...2, using: &random))
                .sorted()
            {
                let value = Array(one(values).utf8)
                Form.append(name, value: value.span, to: &draft.body)
            }
            return draft
        }
        let paths = ["/", "/a", "/a/", "//a", "/a//", "/%61", "/a%2F", "/a;b", "/:", "/@path", "/\"a\":"]
        let queries = [
            "", "?", "?a", "?a=", "?a=1", "?a=1&b=2", "?b=2&a=1", "?a=1%26b=2", "?a=1+b", "?a=1%20b", "?&",
            "??",
        ]
        let values = ["1", "1,2", "1, 2", "\"1\"", "a: b", "a=1", "", "x;y=1", "a  b"]
        var draft = Draft(
            method: one(["GET", "POST", "get", "PUT"]), target: Array((one(paths) + one(queries)).utf8),
            authority: one(["a", "a:1", "b", "a.b"]))
        for name in ["x-a", "x-b", "x-a-b"] where Bool.random(using: &random) {
            draft.setField(name, to: one(values))
        }
        if Bool.random(using: &random) { draft.fields.append(Draft.Field(name: "x-a", value: one(values))) }
        draft.body = Array(one(["", "1", "12"]).utf8)
        return draft
    }

    /// What a backend would make of it. An empty query means what none does, and lines of one name are one
    /// list.
    static func meaning(of draft: Draft, for scheme: SchemeName) -> String {
        let body = draft.body.map { String($0) }.joined(separator: ".")
        if scheme == .formMD5 { return body }
        var lines: [String: [String]] = [:]
        for field in draft.fields {
            lines[field.name.lowercased(), default: []].append(String(decoding: field.value, as: UTF8.self))
        }
        let fields = lines.sorted { $0.key < $1.key }.map { [$0.key, $0.value.joined(separator: ", ")] }
        var target = String(decoding: draft.target, as: UTF8.self)
        if target.hasSuffix("?"), target.firstIndex(of: "?") == target.index(before: target.endIndex) {
            target.removeLast()
        }
        return "\([draft.method, target, draft.authority]) \(fields) \(body)"
    }
}
