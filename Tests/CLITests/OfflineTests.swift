import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignCLI

@Suite struct RawRequestTests {
    @Test(
        "requests as people keep them",
        arguments: [
            ("GET /a?b HTTP/1.1\nHost: h\n\n", ""), ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""),
            ("GET / HTTP/1.1\nHost: h", ""),
            ("GET / HTTP/1.1\nHost: h\n", ""), ("POST / HTTP/1.1\nHost: h\n\nbody\n", "body\n"),
            ("POST / HTTP/1.1\nHost: h\ncontent-length: 4\n\nbody", "body"),
            ("POST / HTTP/1.1\nHost: h\nContent-Length: 4\n\nbody\n", "body"),
            ("POST / HTTP/1.1\nHost: h\nContent-Length: 4\n\nbody\r\n", "body"),
            ("POST / HTTP/1.1\r\nHost: h\r\n\r\na\r\n\r\nb", "a\r\n\r\nb"),
        ])
    func good(_ row: (text: String, body: String)) throws {
        let request = try RequestFile.read(Array(row.text.utf8), transport: .tls)
        #expect(request.body == Array(row.body.utf8))
        #expect(request.text(request.authority) == "h")
    }

    @Test(
        "what is no request",
        arguments: [
            "", "\n", "GET / HTTP/1.1\n\n", "GET /\nHost: h\n\n", "GET / HTTP/1.1\nHost: a\nHost: b\n\n",
            "GET / HTTP/1.1\nHost : a\n\n", "GET / HTTP/1.1\nHost: h\n X: folded\n\n",
            "GET a HTTP/1.1\nHost: h\n\n", "POST / HTTP/1.1\nHost: h\nContent-Length: 5\n\nbody",
            "POST / HTTP/1.1\nHost: h\nContent-Length: 3\n\nbody",
            "POST / HTTP/1.1\nHost: h\nContent-Length: x\n\nbody",
            "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n0\n\n",
            "POST / HTTP/1.1\nHost: h\nContent-Length: 4\nContent-Length: 4\n\nbody",
            "GET / HTTP/1.1\nHost: h\nX: a\0b\n\n",
            "POST / HTTP/1.1\nHost: h\nContent-Length: 99999999999999999999\n\nbody",
        ])
    func bad(_ text: String) {
        let refusal = #expect(throws: Refusal.self) {
            try RequestFile.read(Array(text.utf8), transport: .tls)
        }
        #expect(refusal?.code == .malformed)
    }

    @Test func aDraftIsTheRequestAgain() throws {
        let text = "PUT /x?y=%2F HTTP/1.1\r\nHost: h:1\r\na: 1\r\na: 2\r\nContent-Length: 2\r\n\r\nhi"
        let draft = Draft(try RequestFile.read(Array(text.utf8), transport: .plain))
        #expect(String(decoding: draft.wire, as: UTF8.self) == text)
        #expect(draft.transport == .plain)
    }
}

@Suite struct SecretTextTests {
    private static let printed = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

    private func bytes(_ text: String, _ bare: SecretText.UnprefixedForm) throws(OperationalError) -> [UInt8]
    {
        let secret = try SecretText.secret(Array(text.utf8), bare: bare, at: "--secret")
        return secret.withExposedBytes { span in (0..<span.count).map { span[$0] } }
    }

    @Test("prefixes, in every place")
    func prefixes() throws {
        for bare in [
            SecretText.UnprefixedForm.theKeyItself, .asPrinted(.messageSignatures), .asPrinted(.formMD5),
        ] {
            #expect(try bytes("text:hex:00", bare) == Array("hex:00".utf8))
            #expect(try bytes("hex:00fF", bare) == [0, 255])
            #expect(try bytes("base64url:AP8", bare) == [0, 255])
            #expect(try bytes("plain", bare) == Array("plain".utf8))
        }
    }

    @Test func whatIsPrintedIsReadBack() throws {
        #expect(try bytes(Self.printed, .asPrinted(.messageSignatures)) == Array(0..<32))
        #expect(try bytes(Self.printed, .asPrinted(.formMD5)) == Array(Self.printed.utf8))
        #expect(try bytes(Self.printed, .theKeyItself) == Array(Self.printed.utf8))
        #expect(try bytes("text:" + Self.printed, .asPrinted(.messageSignatures)) == Array(Self.printed.utf8))
    }

    @Test(
        "no secret",
        arguments: ["", "hex:", "hex:0", "hex:zz", "base64url:", "base64url:A", "base64url:AP8=", "text:"])
    func none(_ text: String) {
        let fault = #expect(throws: OperationalError.self) { try bytes(text, .asPrinted(.messageSignatures)) }
        #expect(fault?.kind == .usage)
    }
}

@Suite struct MomentTests {
    @Test(
        "times",
        arguments: [
            ("now", 42), ("0", 0), ("1700000000", 1_700_000_000), ("2023-11-14T22:13:20Z", 1_700_000_000),
            ("2023-11-15T06:13:20+08:00", 1_700_000_000), ("2023-11-14T17:43:20-04:30", 1_700_000_000),
            ("1970-01-01T00:00:00Z", 0), ("2024-02-29T00:00:00Z", 1_709_164_800),
            ("2023-02-29T00:00:00Z", nil), ("", nil), ("-1", nil), ("1.5", nil), ("253402300800", nil),
            ("tomorrow", nil), ("2023-11-14 22:13:20Z", nil), ("2023-11-14T22:13:20", nil),
            ("2023-11-14T22:13:20+0800", nil), ("2023-11-14T22:13:20+25:00", nil),
            ("99999999999999999999", nil), ("2023-11-14", 1_699_920_000), ("2023-02-29", nil),
            ("2023-1-1", nil), ("+0s", 42), ("+90s", 132), ("+5m", 342), ("+2h", 7_242), ("+7d", 604_842),
            ("+", nil), ("+s", nil), ("+7", nil), ("+7w", nil), ("7d", nil), ("+-1d", nil), ("+1.5d", nil),
            ("+253402300799d", nil), ("+99999999999999999999s", nil), ("+253402300758s", nil),
            ("+253402300757s", 253_402_300_799),
        ])
    func times(_ row: (text: String, seconds: Int64?)) {
        #expect(TimeText.read(row.text, now: 42) == row.seconds)
    }

    @Test func whatIsPrintedIsTakenBack() {
        for seconds: Int64 in [0, 1_700_000_000, 253_402_300_799] {
            #expect(TimeText.read(TimeText.text(seconds), now: 42) == seconds)
        }
        #expect(TimeText.text(1_700_000_000) == "2023-11-14T22:13:20Z")
        #expect(TimeText.text(-1) == "-1")
    }
}

@Suite struct NonceTests {
    @Test func lettersAndDigitsOfTheRightNumber() {
        let nonces = (0..<200).map { _ in Nonce.make(for: .formMD5) }
        #expect(
            nonces.allSatisfy {
                $0.utf8.count == 16 && $0.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
            })
        #expect(Set(nonces).count == 200)
        #expect(Nonce.make(for: .messageSignatures).utf8.count == 22)
    }

    /// A byte above the last multiple of 62 is drawn again, and does not become an early letter.
    @Test func noLetterIsFavoured() {
        struct Bytes: RandomSource {
            func bytes(_ count: Int) -> [UInt8] { (0..<count).map { $0 % 2 == 0 ? 255 : 61 } }
        }
        #expect(Nonce.make(for: .formMD5, random: Bytes()) == String(repeating: "9", count: 16))
    }
}
