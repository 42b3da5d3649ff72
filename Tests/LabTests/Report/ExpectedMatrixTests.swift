import CountersignLab
import CountersignWire
import Testing

@Suite struct ExpectedMatrixTests {
    private static func expectation(_ rows: String) throws -> ExpectedMatrix {
        try ExpectedMatrix(reading: Array("{\"rows\":[\(rows)]}".utf8))
    }

    private static func differences(_ rows: String, _ report: LabReport) throws -> [String] {
        try expectation(rows).differences(
            from: report.matrix, rows: ["md5", "sigv4", "countersign"],
            attacks: SampleMatrix.attacks.map(\.name)
        ).map(\.description)
    }

    private static let md5 = """
        {"scheme":"md5","cells":{"eavesdrop":{"verdict":"F","how":"another way"},\
        "tamper-path":{"verdict":"H"},
        "tamper-body":{"verdict":"F"},"replay-at-once":{"verdict":"–"}}}
        """
    private static let run = SampleMatrix.report([
        SampleMatrix.row(
            "md5", [SampleMatrix.fell, SampleMatrix.held, SampleMatrix.fell, SampleMatrix.notApplicable])
    ])

    @Test func theSameDiffersInNothing() throws {
        #expect(try Self.differences(Self.md5, Self.run).isEmpty)
        let json = Array(Self.run.json.text.utf8)
        #expect(try ExpectedMatrix(reading: json).rows["md5"]?.count == 4)
    }

    @Test func rowsThatWereNotSelectedAreNotLookedFor() throws {
        let other = #",{"scheme":"sigv4","cells":{"eavesdrop":{"verdict":"H"}}}"#
        #expect(try Self.differences(Self.md5 + other, Self.run).isEmpty)
    }

    @Test(
        "each way to differ is said",
        arguments: [
            (
                "\"eavesdrop\":{\"verdict\":\"F\"", "\"eavesdrop\":{\"verdict\":\"H\"",
                "md5 eavesdrop: expected H, got F: 250 went to the thief"
            ),
            (
                "\"tamper-path\":{\"verdict\":\"H\"},", "",
                "md5 tamper-path: not in the expectation; got H: refused: replayed"
            ),
            (
                "\"scheme\":\"md5\"", "\"scheme\":\"md4\"",
                "md5 eavesdrop: not in the expectation; got F: 250 went to the thief"
            ),
            ("\"tamper-path\"", "\"tamper-paths\"", "md5 tamper-paths: expected, but there is no such cell"),
            (
                "\"verdict\":\"–\"", "\"verdict\":\"H\"",
                "md5 replay-at-once: expected H, got –: no key in the app"
            ),
        ])
    func differing(_ row: (old: String, new: String, said: String)) throws {
        let rows = Self.md5.replacing(row.old, with: row.new)
        #expect(rows != Self.md5)
        #expect(try Self.differences(rows, Self.run).contains(row.said))
    }

    @Test("an error is never what was expected", arguments: ["H", "F", "–"])
    func errors(_ verdict: String) throws {
        let rows = #"{"scheme":"md5","cells":{"eavesdrop":{"verdict":"\#(verdict)"}}}"#
        for cell in [SampleMatrix.fault, nil] {
            let report = SampleMatrix.report(
                [SampleMatrix.row("md5", [cell])], Array(SampleMatrix.attacks.prefix(1)))
            let said = try Self.differences(rows, report)
            #expect(said.count == 1)
            #expect(
                said.first?.contains(cell == nil ? "was not run" : "could not be staged: the server") == true)
        }
    }

    @Test(
        "files that are no expectation",
        arguments: [
            "", "[]", "{}", #"{"rows":{}}"#, #"{"rows":[{"scheme":"md5"}]}"#, #"{"rows":[{"cells":{}}]}"#,
            #"{"rows":[{"scheme":"md5","cells":{"a":{"verdict":"!"}}}]}"#,
            #"{"rows":[{"scheme":"md5","cells":{"a":"H"}}]}"#,
            #"{"rows":[{"scheme":"md5","cells":{"a":{"verdict":"-"}}}]}"#,
            #"{"rows":[{"scheme":"md5","cells":{}},{"scheme":"md5","cells":{}}]}"#,
            #"{"rows":[{"scheme":"md5","cells":{"a":{"verdict":"H"},"a":{"verdict":"F"}}}]}"#,
        ])
    func malformed(_ text: String) {
        #expect(throws: LabError.self) { try ExpectedMatrix(reading: Array(text.utf8)) }
    }
}
