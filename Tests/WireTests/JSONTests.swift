import CountersignWire
import TestRounds
import Testing

@Suite struct JSONTests {
    @Test(
        "what is JSON is read, and its bytes are kept",
        arguments: [
            ("null", "null"), (" true ", "true"), ("-0.5e+10", "-0.5e+10"), (#""aé""#, #""aé""#),
            (#"{"a" : [1, {"b":null}]}"#, #"{"a" : [1, {"b":null}]}"#), ("[]", "[]"), ("\n{}\t", "{}"),
        ])
    func reads(_ row: (text: String, raw: String)) throws {
        let document = try JSONReader.read(Array(row.text.utf8))
        #expect(document.text(of: document.root) == row.raw)
    }

    @Test(
        "what is not JSON is refused at its place",
        arguments: [
            ("", 0), ("nul", 0), ("01", 1), ("1.", 2), ("-", 1), ("+1", 0), ("1e", 2), (".5", 0), ("NaN", 0),
            ("'a'", 0), ("[1,]", 3), ("[1 2]", 3), ("{\"a\":1,}", 7), ("{a:1}", 1), ("{\"a\" 1}", 5),
            ("\"a", 2), ("\"\u{1}\"", 1), (#""\x""#, 2), (#""\u12g4""#, 5), (#""\ud800""#, 7),
            (#""\ud800\u0041""#, 13), (#""\udc00""#, 3), ("1 2", 2), ("// c\n1", 0), ("\u{FEFF}1", 0),
            ("[", 1), ("{\"a\":", 5),
        ])
    func refuses(_ row: (text: String, offset: Int)) {
        let error = #expect(throws: ParseError.self) { try JSONReader.read(Array(row.text.utf8)) }
        #expect(error?.offset == row.offset, "\(row.text): \(error?.description ?? "")")
    }

    @Test(
        "names that occur twice, however they are escaped",
        arguments: [
            #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#, #"{"x":{"b":1,"b":1}}"#, #"{"":1,"":2}"#,
        ])
    func duplicates(_ text: String) {
        let error = #expect(throws: ParseError.self) { try JSONReader.read(Array(text.utf8)) }
        #expect(error?.reason.contains("second time") == true)
    }

    @Test func namesDifferByBytesNotByLook() throws {
        // é as one scalar and as two: equal to Swift, two members to every other reader.
        let document = try JSONReader.read(Array("{\"\u{E9}\":1,\"e\u{301}\":2}".utf8))
        #expect(document.root["e\u{301}"].map(document.text) == "2")
        #expect(document.root["\u{E9}"].map(document.text) == "1")
    }

    @Test(
        "ill-formed UTF-8",
        arguments: [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]])
    func illFormed(_ bytes: [UInt8]) {
        let error = #expect(throws: ParseError.self) { try JSONReader.read(bytes) }
        #expect(error?.offset == 1)
    }

    @Test("depth and size are bounded")
    func bounds() throws {
        let nested = { (depth: Int) in
            Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        _ = try JSONReader.read(nested(64))
        #expect(throws: ParseError.self) { try JSONReader.read(nested(65)) }
        #expect(throws: ParseError.self) { try JSONReader.read(nested(400_000)) }
        var bounds = JSONReader.Bounds()
        bounds.bytes = 4
        _ = try JSONReader.read(Array("1234".utf8), bounds: bounds)
        #expect(throws: ParseError.self) { try JSONReader.read(Array("12345".utf8), bounds: bounds) }
    }

    @Test(
        "escapes",
        arguments: [
            (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u00e9\u20AC\ud83d\ude00""#, "é€😀"),
            (#""\u0000""#, "\0"),
        ])
    func escapes(_ row: (text: String, value: String)) throws {
        let value = try JSONReader.read(Array(row.text.utf8)).root.string
        #expect(value.map { Array($0.utf8) } == Array(row.value.utf8))
    }

    @Test(
        "whole numbers, in their range",
        arguments: [
            ("0", 0), ("-3", -3), ("10", 10), ("11", nil), ("-4", nil), ("1.0", nil), ("1e0", nil),
            ("true", nil), ("99999999999999999999", nil), ("-9223372036854775808", nil),
        ])
    func integers(_ row: (text: String, value: Int?)) throws {
        let document = try JSONReader.read(Array(row.text.utf8))
        #expect(document.integer(document.root, in: -3...10) == row.value)
    }

    @Test(
        "comments, where they are asked for",
        arguments: [
            ("// a\n{/* b */\"k\"/**/:/***/1 // c\n}// end", true), ("/* open", false), ("/", false),
            ("1 /", false), ("/*/", false),
        ])
    func comments(_ row: (text: String, isGood: Bool)) {
        let document = try? JSONReader.read(Array(row.text.utf8), dialect: .comments)
        #expect((document != nil) == row.isGood)
    }

    /// Total: no input traps, and what is read once is read again from its own bytes.
    @Test func survivesAnything() {
        var random = seededRandom()
        let pieces = [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d800", "1", "-", ".", "e", "true", "null", "/",
            "*", " ", "\u{E9}",
        ]
        var accepted = 0
        for _ in 0..<rounds(20_000) {
            var bytes = (0..<Int.random(in: 0..<12, using: &random)).flatMap { _ in
                Array((pieces.randomElement(using: &random) ?? "").utf8)
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                bytes.append(UInt8.random(in: 0...255, using: &random))
            }
            guard let document = try? JSONReader.read(bytes, dialect: .comments) else { continue }
            accepted += 1
            let again = try? JSONReader.read(Array(document.bytes(of: document.root)), dialect: .comments)
            #expect(again != nil)
        }
        #expect(accepted > 0, "nothing was accepted: the test proves nothing")
    }
}

@Suite struct JSONWriterTests {
    static let table: [(value: JSONValue, text: String)] = [
        (.null, "null"), (.decimal(0.5), "0.5"), (.decimal(.infinity), "null"), (true, "true"), (-5, "-5"),
        ([], "[]"), (.object([]), "{}"), (["b": 1, "a": [2, nil]], #"{"b":1,"a":[2,null]}"#),
        ("\"\\\n\r\t\u{0}\u{1F}\u{7F}\u{2028}é😀/", #""\"\\\n\r\t\u0000\u001f\u007f\u2028é😀/""#),
    ]

    @Test("written on one line", arguments: table)
    func line(_ row: (value: JSONValue, text: String)) {
        #expect(row.value.text == row.text)
    }

    @Test func lines() {
        let value: JSONValue = ["a": [1, 2], "b": [], "c": ["d": "e"]]
        #expect(
            value.prettyText
                == "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": [],\n  \"c\": {\n    \"d\": \"e\"\n  }\n}"
        )
    }

    @Test func whatIsWrittenIsReadBack() throws {
        let text = (0..<0x300).compactMap(Unicode.Scalar.init).map(String.init).joined()
        let read = try JSONReader.read(Array(JSONValue.string(text).text.utf8)).root.string
        #expect(read.map { Array($0.utf8) } == Array(text.utf8))
    }
}

extension JSONWriterTests {
    @Test("a text in a buffer is that of a value, wherever the byte stands that needs an escape")
    func buffered() {
        for length in 0..<20 {
            for place in 0..<max(length, 1) {
                for byte in 0..<0x90 {
                    var scalars = [Unicode.Scalar](repeating: "a", count: length)
                    if length > 0 { scalars[place] = Unicode.Scalar(UInt8(byte)) }
                    let text = String(String.UnicodeScalarView(scalars))
                    var buffer = ByteBuffer()
                    buffer.append(json: text)
                    #expect(buffer.array == JSONValue.string(text).bytes)
                }
            }
        }
    }
}
