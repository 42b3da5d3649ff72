import CountersignWire
import Glibc
import Testing

@testable import CountersignCLI
@testable import CountersignLab
@testable import countersign_lab

@Suite struct LabCommandTests {
    private static func parsed(_ words: [String]) throws -> Arguments {
        try Arguments.parse(words, for: .lab)
    }

    @Test(
        "names that the lab does not know",
        arguments: [["--scheme", "md6"], ["--scheme=md5,", "--scheme", "md5"], ["--attack", "tampering"]])
    func unknown(_ words: [String]) throws {
        let arguments = try Self.parsed(words)
        let fault = #expect(throws: OperationalError.self) { try LabOptions.selection(arguments) }
        #expect(fault?.kind == .usage)
        #expect(fault?.message.contains("there are ") == true)
        #expect(fault?.message.contains(words[0].prefix(8)) == true)
    }

    @Test func aMisspeltNameIsHintedAt() throws {
        let arguments = try Self.parsed(["--scheme", "countersing"])
        let fault = #expect(throws: OperationalError.self) { try LabOptions.selection(arguments) }
        #expect(fault?.message.contains("did you mean `countersign`?") == true)
    }

    @Test(
        "rows side by side",
        arguments: [("1", 1), ("64", 64), ("0", nil), ("65", nil), ("-1", nil), ("two", nil)])
    func jobs(_ row: (text: String, jobs: Int?)) throws {
        let arguments = try Self.parsed(["--jobs=\(row.text)"])
        guard let jobs = row.jobs else {
            #expect(throws: OperationalError.self) { try LabOptions.jobs(arguments) }
            return
        }
        #expect(try LabOptions.jobs(arguments) == jobs)
    }

    @Test func toolsAreNamed() throws {
        #expect(try LabOptions.tools(Self.parsed([])) == LabTools())
        #expect(
            try LabOptions.tools(Self.parsed(["--with", "mitmproxy=/bin/sh"])).middle == .mitmproxy("/bin/sh")
        )
        for words in [["--with", "wireshark"], ["--with", "tshark,"], ["--with", "mitmproxy="]] {
            let arguments = try Self.parsed(words)
            let fault = #expect(throws: OperationalError.self) { try LabOptions.tools(arguments) }
            #expect(fault?.kind == .usage)
        }
        for word in ["mitmproxy", "tshark"] {
            #expect(throws: OperationalError.self) { try LabTools([word], path: "/proc/nowhere:/proc") }
        }
        let arguments = try Self.parsed(["--with", "mitmproxy=/proc/nowhere"])
        let missing = #expect(throws: OperationalError.self) { try LabOptions.tools(arguments) }
        #expect(missing?.kind == .unreachable)
    }

    @Test func progressSaysWhatIsAtWork() {
        var progress = LabProgress(row: "md5", attack: "tamper-path", done: 5, total: 20)
        #expect(LabProgressLine.text(progress) == "[#####...............] 5 of 20  md5: tamper-path")
        progress.attack = nil
        #expect(LabProgressLine.text(progress).hasSuffix("md5: setting the stage"))
        progress.total = 0
        #expect(LabProgressLine.text(progress).hasPrefix("[####################] 5 of 0"))
    }

    @Test func aFileIsOpenedAtOnceAndWrittenInTheEnd() throws {
        var template = Array("/tmp/countersign-output-XXXXXX".utf8CString)
        close(mkstemp(&template))
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { unlink(path) }
        try OutputFile(path).replace("what stood there before")
        let file = try OutputFile(path)
        #expect(try Console.readFile(path) == Array("what stood there before".utf8))
        try file.replace("short")
        #expect(try Console.readFile(path) == Array("short".utf8))
        let fault = #expect(throws: OperationalError.self) { try OutputFile("\(path)/below/a/file") }
        #expect(fault?.kind == .usage)
    }

    @Test(
        "files that are no expectation",
        arguments: ["{", "{\"rows\":[{\"scheme\":\"md5\",\"cells\":{\"x\":{\"verdict\":\"!\"}}}]}"])
    func expectation(_ text: String) throws {
        var template = Array("/tmp/countersign-expected-XXXXXX".utf8CString)
        close(mkstemp(&template))
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { unlink(path) }
        try OutputFile(path).replace(text)
        let run = Invocation(
            arguments: try Self.parsed(["--expect", path]), console: Console(),
            environment: Environment(variables: [:])
        )
        let fault = #expect(throws: OperationalError.self) { try LabOptions(run) }
        #expect(fault?.kind == .usage)
        #expect(fault?.message.hasPrefix("--expect \(path): ") == true)
    }
}
