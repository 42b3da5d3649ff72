import CountersignHTTP
import CountersignServer
import CountersignWire
import Testing

@testable import CountersignCLI

/// The console's markup escapes whatever is inserted, its paths encode it, each operation that changes
/// something has a form, and the files have paths of their own.
@Suite struct ConsoleTests {
    @Test(arguments: [
        ("<img src=x>", "&lt;img src=x&gt;"), ("\"'&", "&quot;&#39;&amp;"), ("zoë", "zoë"),
        ("a\u{202E}b", "a\u{FFFD}b"), ("a\u{2066}b\u{200F}", "a\u{FFFD}b\u{FFFD}"),
        ("a\u{0}b\u{1B}", "a\u{FFFD}b\u{FFFD}"), ("a\nb\tc", "a\nb\tc"),
    ])
    func insertedTextIsEscaped(text: String, expected: String) {
        let markup: HTML = "<td title=\"\(text)\">\(text)</td>"
        #expect(markup.text == "<td title=\"\(expected)\">\(expected)</td>")
        // Once: markup within markup stays.
        let outer: HTML = "<tr>\(markup)\([markup])</tr>"
        #expect(outer.text == "<tr>\(markup.text)\(markup.text)</tr>")
    }

    @Test func namesAreOneSegmentOfAPath() {
        #expect(
            ConsolePath.path("apps", "a/b?c#d", "accounts", "../ë")
                == "/console/apps/a%2Fb%3Fc%23d/accounts/..%2F%C3%AB")
        #expect(
            ConsolePath.path("search", query: [("q", "a&b=c"), ("r", " ")])
                == "/console/search?q=a%26b%3Dc&r=%20")
        #expect(ConsolePath.query([]) == "")
    }

    /// A browser resolves `.` and `..` before it sends a path. Source: WHATWG URL §4.4.
    @Test(arguments: [
        (".", "~."), ("..", "~.."), ("~.", "~~."), ("~~..", "~~~.."), ("...", "..."), ("~", "~"),
        ("~a", "~a"), ("~...", "~..."), (".a", ".a"), ("%2e", "%252e"), ("", ""),
    ])
    func dotsAreNoSegment(name: String, segment: String) {
        #expect(ConsolePath.path("apps", name) == "/console/apps/\(segment)")
        #expect(ConsolePath.name(ofSegment: segment.replacing("%25", with: "%")) == name)
    }

    @Test(arguments: [
        ("a=1&b=%C3%AB+x", ["a": "1", "b": "ë x"]), ("", [:]), ("a=", ["a": ""]), ("a", ["a": ""]),
        ("a=1&a=2", nil), ("a=%zz", nil), ("a=1&", nil), ("a=%00", nil), ("=1", nil),
    ])
    func formsAreReadStrictly(text: String, expected: [String: String]?) {
        #expect((try? ConsoleRequest.pairs(in: Array(text.utf8))) == expected)
    }

    @Test func everyChangeHasAForm() {
        let changes = APIOperation.all.filter { $0.method != .get }.map(\.id)
        #expect(Set(changes) == Set(ConsoleAction.all.map(\.operation)))
        #expect(ConsoleAction.all.count == changes.count)
    }

    @Test(arguments: ConsoleAction.all.map(\.operation))
    func theSubjectOfAFormIsAnInput(name: String) throws {
        let action = try #require(ConsoleAction.named(name))
        let operation = try #require(APIOperation.all.first { $0.id == name })
        // The name of a setting is a part of the settings; an app and an account tell where to go afterwards.
        let known = Set(operation.inputs.map(\.name) + ["name", "app", "account"])
        #expect(Set(action.subject).isSubset(of: known))
        for input in operation.inputs where operation.isInPath(input) && !action.subject.contains(input.name)
        {
            #expect(name.hasPrefix("add"), "the form of \(name) asks for \(input.name)")
        }
        #expect(
            action.page(Dictionary(uniqueKeysWithValues: action.subject.map { ($0, "x") })).hasPrefix(
                "/console/"))
        if action.weight == .grave { #expect(action.confirmed != nil) }
    }

    @Test func assetsHaveADigestInTheirPaths() {
        #expect(ConsoleAsset.all.count == 3)
        #expect(Set(ConsoleAsset.all.map(\.path)).count == 3)
        for asset in ConsoleAsset.all {
            #expect(asset.response.status == 200 && asset.response.body.count > 100)
            #expect(asset.path.wholeMatch(of: /\/console\/assets\/[0-9a-f]{12}-[a-z.]+/) != nil)
        }
    }

    @Test(arguments: [
        (0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (-1_000, "-1,000"),
        (-100, "-100"),
    ])
    func numbersAreGrouped(number: Int, expected: String) {
        #expect(ConsoleMarkup.number(number) == expected)
    }
}
