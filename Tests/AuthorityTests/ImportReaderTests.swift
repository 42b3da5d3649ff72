import CountersignAuthority
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct ImportReaderTests {
    private static let md5 = "5f4dcc3b5aa765d61d8327deb882cf99"

    @Test("rows of CSV", arguments: csvTable)
    func csv(_ row: (line: String, outcome: String)) throws {
        let (accounts, problems) = try read(.csv, "name,user_id,rung,value\n\(row.line)\n")
        #expect(accounts.map(shown) + problems.map(\.description) == [row.outcome])
    }

    @Test("JSON lines", arguments: jsonTable)
    func json(_ row: (line: String, outcome: String)) throws {
        let (accounts, problems) = try read(.jsonLines, row.line)
        #expect(accounts.map(shown) + problems.map(\.description) == [row.outcome])
    }

    @Test("the first line of a CSV", arguments: headerTable)
    func headers(_ row: (header: String, reason: String?)) throws {
        do {
            let (accounts, problems) = try read(.csv, row.header)
            #expect(accounts.isEmpty && problems.isEmpty && row.reason == nil)
        } catch {
            #expect(error.line == 1)
            #expect(row.reason.map { error.reason.hasPrefix($0) } == true, "\(error)")
        }
    }

    @Test("columns in any order, line ends of either kind, a mark at the start, a last line without its end")
    func shapes() throws {
        let text = "\u{FEFF}value,rung,name,user_id\r\n\(Self.md5),md5,bob,2\r\n\r\n\(Self.md5),md5,eve,3"
        let (accounts, problems) = try read(.csv, text)
        #expect(accounts.map(shown) == ["bob 2 md5 \(Self.md5)", "eve 3 md5 \(Self.md5)"])
        #expect(problems.isEmpty)
    }

    @Test("pieces of any size give the same lines", arguments: [1, 2, 3, 7, 64, 10_000])
    func pieces(_ size: Int) throws {
        let lines = (1...50).map { $0 % 7 == 0 ? "broken" : "user\($0),\($0),md5,\(Self.md5)" }
        let text = "name,user_id,rung,value\n" + lines.joined(separator: "\n")
        let (accounts, problems) = try read(.csv, text, pieces: size)
        #expect(accounts.map(\.userID.number) == (1...50).filter { $0 % 7 != 0 }.map(Int64.init))
        #expect(problems.map(\.line) == (1...50).filter { $0 % 7 == 0 }.map { $0 + 1 })
    }

    @Test("a line without end is refused, not gathered, and the next one is read")
    func longLine() throws {
        let text =
            "name,user_id,rung,value\n" + String(repeating: "x", count: 1 << 20) + "\nbob,2,md5,\(Self.md5)\n"
        let (accounts, problems) = try read(.csv, text)
        #expect(problems.map(\.description) == ["line 2: more than 16384 bytes"])
        #expect(accounts.map(\.userID.number) == [2])
    }

    @Test("the longest line that is taken")
    func longestLine() throws {
        let password = String(repeating: "\"\"", count: 1024)
        let (accounts, problems) = try read(
            .csv,
            "name,user_id,rung,value\n\(String(repeating: "n", count: 128)),1,plain-post,\"\(password)\"\n")
        #expect(problems.isEmpty)
        #expect(accounts.first?.value.copied == [UInt8](repeating: UInt8(ascii: "\""), count: 1024))
    }

    @Test("no message repeats a value")
    func quiet() throws {
        for line in [
            "bob,2,md5,hunter2", "bob,hunter2,md5,x", "bob,2,hunter2,x", "hunter2", "a,b,c,\"hunter2",
            "\"a\"hunter2",
        ] {
            let (_, problems) = try read(.csv, "name,user_id,rung,value\n\(line)\n")
            #expect(problems.count == 1)
            #expect(problems.allSatisfy { !$0.description.contains("hunter2") })
        }
        for line in ["{\"hunter2\":1}", "\"hunter2\"", "{\"value\":\"hunter2\",\"value\":1}"] {
            let (_, problems) = try read(.jsonLines, line)
            #expect(problems.count == 1)
            #expect(problems.allSatisfy { !$0.description.contains("hunter2") })
        }
    }

    private func read(
        _ format: ImportReader.Format, _ text: String, pieces: Int = .max
    ) throws(ImportError) -> ([ImportedAccount], [ImportError]) {
        var accounts: [ImportedAccount] = []
        var problems: [ImportError] = []
        func take(_ line: ImportReader.Line) {
            switch line {
            case .account(let account): accounts.append(account)
            case .error(let problem): problems.append(problem)
            }
        }
        var reader = ImportReader(format)
        let bytes = Array(text.utf8)
        var start = 0
        while start < bytes.count {
            let end = start + min(pieces, bytes.count - start)
            try reader.feed(bytes.span.extracting(start..<end), take: take)
            start = end
        }
        try reader.finish(take)
        return (accounts, problems)
    }

    private func shown(_ account: ImportedAccount) -> String {
        let value = String(decoding: account.value.copied, as: UTF8.self)
        return "\(account.name) \(account.userID.number) \(account.rung.rawValue) \(value)"
    }
}

private let hash = "5f4dcc3b5aa765d61d8327deb882cf99"

private let csvTable: [(line: String, outcome: String)] = [
    ("bob,2,md5,\(hash)", "bob 2 md5 \(hash)"),
    ("Bob@Example.com,9223372036854775807,base64,eA==", "bob@example.com 9223372036854775807 base64 eA=="),
    ("\"bo,b\",2,plain-post,\"a \"\"quoted\"\" b\"", "bo,b 2 plain-post a \"quoted\" b"),
    ("A\u{30A},1,plain-get, x ", "\u{C5} 1 plain-get  x "),
    ("bob,2,md5", "line 2: 3 fields, where the header has 4"),
    ("bob,2,md5,\(hash),x", "line 2: more than 4 fields"),
    (",2,md5,\(hash)", "line 2, name: an account name needs at least one character"),
    ("bob ,2,md5,\(hash)", "line 2, name: an account name neither begins nor ends with a space"),
    ("bob,0,md5,\(hash)", "line 2, user_id: expected a whole number from 1 to 9223372036854775807"),
    ("bob,01,md5,\(hash)", "line 2, user_id: expected a whole number from 1 to 9223372036854775807"),
    ("bob,-1,md5,\(hash)", "line 2, user_id: expected a whole number from 1 to 9223372036854775807"),
    (
        "bob,9223372036854775808,md5,\(hash)",
        "line 2, user_id: expected a whole number from 1 to 9223372036854775807"
    ),
    (
        "bob,2,MD5,\(hash)",
        "line 2, rung: expected one of plain-get, plain-post, base64, md5, md5-salt, hmac-md5, hmac-md5-time"
    ),
    ("bob,2,md5,x", "line 2, value: expected 32 lower-case hexadecimal digits for the rung md5"),
    ("bob,2,base64,eA", "line 2, value: expected padded Base64 for the rung base64"),
    ("bob,2,plain-post,", "line 2, value: expected a value that is not empty for the rung plain-post"),
    ("bob,2,md5,\"\(hash)", "line 2: a quote that is not closed, at byte 11"),
    ("b\"ob,2,md5,\(hash)", "line 2: a quote inside a field that has none around it, at byte 2"),
    ("\"b\"ob,2,md5,\(hash)", "line 2: something behind a closing quote, at byte 4"),
]

private let jsonTable: [(line: String, outcome: String)] = [
    (#"{"name":"bob","user_id":2,"rung":"md5","value":"\#(hash)"}"#, "bob 2 md5 \(hash)"),
    (#" { "value" : "a\"b", "rung":"plain-get","user_id":"7","name":"\u00c5" } "#, "\u{C5} 7 plain-get a\"b"),
    (#"{"name":"bob","user_id":2,"rung":"md5"}"#, "line 1, value: is missing"),
    (#"{"name":1,"user_id":2,"rung":"md5","value":"x"}"#, "line 1, name: expected a string, not a number"),
    (
        #"{"name":"bob","user_id":2.0,"rung":"md5","value":"x"}"#,
        "line 1, user_id: expected a whole number from 1 to 9223372036854775807"
    ),
    (#"{"name":"bob","mail":"x"}"#, "line 1: a member of another name"),
    (#"["bob"]"#, "line 1: expected an object, not a list"),
    (#"{"name":"bob""#, "line 1: expected a comma or the closing bracket at byte 13"),
]

private let headerTable: [(header: String, reason: String?)] = [
    ("name,user_id,rung,value", nil),
    ("\"value\",rung,user_id,name", nil),
    ("", "the file is empty"),
    ("\n", "a column of another name"),
    ("name,user_id,rung", "no column value"),
    ("name,user_id,rung,rung", "the column rung twice"),
    ("name,user_id,rung,value,value", "more than 4 fields"),
    ("name,user_id,rung,Value", "a column of another name"),
]
