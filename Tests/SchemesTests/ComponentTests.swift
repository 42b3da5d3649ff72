import CountersignSchemes
import CountersignWire
import Testing

/// What a component is worth, and what is none.
@Suite struct ComponentTests {
    @Test(
        "the RFC's examples",
        arguments: try Vectors.load("message-signatures/components.json", as: Example.self))
    func examples(_ example: Example) throws {
        #expect(try example.message.value(of: example.component) == example.value)
    }

    @Test(
        "structured fields are written anew",
        arguments: [
            (
                "\"repr-digest\";sf", "Repr-Digest", "sha-512=:AAAA:,   a=?1;x=1.50;y",
                "sha-512=:AAAA:, a;x=1.5;y"
            ),
            ("\"priority\";sf", "Priority", "u=01,  i", "u=1, i"),
            (
                "\"cache-status\";sf", "Cache-Status", "a;hit;fwd=miss,b; ttl=-010",
                "a;hit;fwd=miss, b;ttl=-10"
            ),
            ("\"client-cert\";sf", "Client-Cert", ":AAAA: ", ":AAAA:"),
        ])
    func structured(_ row: (component: String, name: String, value: String, canonical: String)) throws {
        #expect(try Message([(row.name, row.value)]).value(of: row.component) == row.canonical)
    }

    @Test("what is refused, with a reason", arguments: refused)
    func refuses(_ row: (component: String, target: String, fields: [[String]])) {
        let refusal = #expect(throws: Refusal.self) {
            try Message(row.fields.map { ($0[0], $0[1]) }, target: row.target).value(of: row.component)
        }
        #expect(refusal?.code == .badSignature || refusal?.code == .malformed)
        #expect(refusal?.detail.isEmpty == false)
    }

    @Test("each component once, whatever the order of its parameters")
    func once() throws {
        let message = Message([("Example-Dict", "a=1, b=2")], target: "/?x=1")
        for pair in [
            "\"example-dict\";key=\"a\" \"example-dict\";key=\"a\"",
            "\"@query-param\";name=\"x\" \"@query-param\";name=\"x\"",
            "\"example-dict\";bs \"example-dict\";bs",
            "\"example-dict\";sf;key=\"a\" \"example-dict\";key=\"a\";sf",
        ] {
            #expect(throws: Refusal.self) { try message.base(of: pair) }
        }
        let base = try message.base(
            of: "\"example-dict\";key=\"a\" \"example-dict\";key=\"b\" \"example-dict\"")
        #expect(
            base.hasPrefix(
                "\"example-dict\";key=\"a\": 1\n\"example-dict\";key=\"b\": 2\n\"example-dict\": a=1, b=2\n")
        )
    }

    @Test("a bound on what is parsed before anybody is known")
    func bounded() throws {
        let keys = (0..<17).map { "k\($0)" }
        let message = Message([("X", keys.map { "\($0)=1" }.joined(separator: ", "))])
        let components = keys.map { "\"x\";key=\"\($0)\"" }
        #expect(throws: Never.self) { _ = try message.base(of: components.dropLast().joined(separator: " ")) }
        #expect(throws: Refusal.self) { try message.base(of: components.joined(separator: " ")) }
    }

    @Test("one member, or one parameter, does not stand for the whole")
    func partial() throws {
        let message = Message([("Content-Digest", "sha-256=:AAAA:")], target: "/?x=1")
        var workspace = Workspace()
        let input = "\"content-digest\";key=\"sha-256\" \"@query-param\";name=\"x\""
        let claim = try #require(
            try MessageSignatures().claim(in: message.request(covering: input), workspace: &workspace))
        #expect(claim.unmetRequirements.contains(.query))
        #expect(claim.coveredFields == .only([]))
    }

    @Test("a list that a workspace has read before means the same as at its first reading")
    func knownLists() throws {
        let long = String(repeating: "x", count: 700)
        let messages = [
            Message([("Long", long), ("X", "a=1, b=2")], target: "/?a=1&b=2"),
            Message([("X", "a=1, b=2")], target: "/?a=1&b=2"),
            Message([("X", "b=3"), ("X", "a=4")], method: "POST", target: "/"),
            Message([("Y", "1")], target: "/?a=5&b"),
        ]
        let many = (0..<64).map { _ in "\"@method\"" }.joined(separator: " ")
        let lists = [
            "\"@method\" \"@path\"", "\"@method\" \"@path\" \"x\"", "\"x\";key=\"a\" \"x\";key=\"b\"",
            "\"x\";key=\"\"", "\"x\";bs", "\"@query-param\";name=\"a\" \"@query-param\";name=\"b\"", "",
            "\"@method\"  \"@path\"", "\"@method\" \"@method\"", "\"@method\";unknown", "\"long\" \"x\"",
            many,
            "\"@method\" \"@path\" ", "\"x\";sf;key=\"a\"", "\"@method\"",
        ]
        var shared = Workspace()
        for round in 0..<3 {
            for message in messages {
                for list in lists {
                    // The first rounds find some lists known, and the last one finds each.
                    for _ in 0...round {
                        var fresh = Workspace()
                        let expected = message.outcome(of: list, in: &fresh)
                        #expect(message.outcome(of: list, in: &shared) == expected, "\(list)")
                    }
                }
            }
        }
    }

    private static let refused: [(component: String, target: String, fields: [[String]])] = [
        ("\"@status\"", "/", []), ("\"@nothing\"", "/", []), ("\"@method\";req", "/", []),
        ("\"@path\";sf", "/", []), ("\"x\";tr", "/", [["X", "1"]]), ("\"x\";unknown", "/", [["X", "1"]]),
        ("\"x\";sf", "/", [["X", "1"]]), ("\"x\";bs;sf", "/", [["X", "1"]]),
        ("\"x\";bs;key=\"a\"", "/", [["X", "a=1"]]), ("\"x\";sf=?0", "/", [["X", "1"]]),
        ("\"x\";key", "/", [["X", "a=1"]]), ("\"x\";key=\"b\"", "/", [["X", "a=1"]]),
        ("\"x\";key=\"a\"", "/", [["X", "a=1, a=2"]]), ("\"x\";key=\"a\"", "/", [["X", "=1"]]),
        ("\"x\";name=\"a\"", "/", [["X", "1"]]), ("\"@query-param\"", "/?a=1", []),
        ("\"@query-param\";name=\"b\"", "/?a=1", []), ("\"@query-param\";name=\"a\"", "/", []),
        ("\"@query-param\";name=\"a\"", "/?a=1&a=2", []), ("\"@query-param\";name=\"a\"", "/?a=1&%61=2", []),
        ("\"@query-param\";name=\"a\"", "/?a=%FF", []), ("\"@query-param\";name=\"a\"", "/?a=%zz", []),
        ("\"content-digest\";sf", "/", [["Content-Digest", "sha-256=:AAB=:"]]),
        ("\"content-digest\";sf", "/", [["Content-Digest", "a=1, a=2"]]),
        ("\"content-digest\";sf", "/", [["Content-Digest", "a=1;x;x"]]),
    ]
}

struct Example: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var method: String
    var transport: String
    var authority: String
    var target: String
    var fields: [[String]]
    var component: String
    var value: String

    var testDescription: String { name }

    var message: Message {
        Message(
            fields.map { ($0[0], $0[1]) }, method: method, target: target, authority: authority,
            transport: transport == "http" ? .plain : .tls)
    }
}

/// A request of which one wants to know what a signature base says.
struct Message {
    private var draft: Draft

    init(
        _ fields: [(String, String)], method: String = "GET", target: String = "/",
        authority: String = "h.example",
        transport: Request.Transport = .tls
    ) {
        draft = Draft(method: method, target: Array(target.utf8), authority: authority, transport: transport)
        draft.fields = fields.map { Draft.Field(name: $0.0, value: $0.1) }
    }

    func request(covering components: String) -> Request {
        var draft = draft
        draft.setField("Signature-Input", to: "a=(\(components));keyid=\"k\"")
        draft.setField("Signature", to: "a=:AAAA:")
        return draft.request()
    }

    func base(of components: String) throws -> String {
        var workspace = Workspace()
        return try base(of: components, in: &workspace)
    }

    /// The base, or why there is none.
    func outcome(of components: String, in workspace: inout Workspace) -> String {
        do {
            return try base(of: components, in: &workspace)
        } catch {
            return "\(error)"
        }
    }

    private func base(of components: String, in workspace: inout Workspace) throws -> String {
        let request = request(covering: components)
        let claim = try #require(try MessageSignatures().claim(in: request, workspace: &workspace))
        try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
        return workspace.text.displayText
    }

    func value(of component: String) throws -> String {
        let base = try base(of: component)
        try #require(base.hasPrefix("\(component): "))
        let value = base.dropFirst(component.count + 2)
        return String(value.prefix { $0 != "\n" })
    }
}
