import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignSchemes

/// Each rule of the two forms, by one request that breaks it.
@Suite struct SigV4ReadingTests {
    @Test("the Authorization field", arguments: headerTable)
    func header(_ row: (change: String, to: String, code: Refusal.Code?)) throws {
        var draft = Draft(method: "GET", target: Array("/a?b=c".utf8), authority: "h.example")
        draft.setField("X-Amz-Date", to: "20270115T080000Z")
        draft.setField("Authorization", to: SigV4ReadingTests.header)
        for field in draft.fields {
            draft.setField(
                field.name,
                to: String(decoding: field.value, as: UTF8.self).replacing(row.change, with: row.to))
        }
        if row.change == "+" {
            let parts = row.to.split(separator: ":", maxSplits: 1).map(String.init)
            draft.fields.append(Draft.Field(name: parts[0], value: parts[1]))
        }
        if row.change == "without" { draft.fields.removeAll { $0.name == row.to } }
        if row.change == "?" { draft.target = Array(row.to.utf8) }
        let refusal = refusal(of: draft.request())
        #expect(refusal?.code == row.code, "\(refusal?.detail ?? "")")
        if refusal != nil { #expect(refusal?.detail.isEmpty == false) }
    }

    @Test("the query of a presigned URL", arguments: queryTable)
    func query(_ row: (change: String, to: String, code: Refusal.Code?)) throws {
        let query = SigV4ReadingTests.query.replacing(row.change, with: row.to)
        let draft = Draft(method: "GET", target: Array("/a?\(query)".utf8), authority: "h.example")
        let refusal = refusal(of: draft.request())
        #expect(refusal?.code == row.code, "\(refusal?.detail ?? "")")
    }

    @Test("times, as X-Amz-Date and as Date", arguments: timesTable)
    func times(_ row: (name: String, text: String, seconds: Int64?)) throws {
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "h.example")
        draft.setField(row.name, to: row.text)
        let field = row.name.lowercased()
        let names = field == "date" ? "date;host" : "host;\(field)"
        // The day in the scope is made to agree.
        for day in ["20270115", "19941106", "20240229"] {
            let text = SigV4ReadingTests.header.replacing("20270115", with: day)
            draft.setField("Authorization", to: text.replacing("host;x-amz-date", with: names))
            var workspace = Workspace()
            let claim = try? SigV4().claim(in: draft.request(), workspace: &workspace)
            if let claim { #expect(claim.created == row.seconds.map { .unix($0) }) }
            if claim != nil || row.seconds == nil { return #expect((claim != nil) == (row.seconds != nil)) }
        }
        Issue.record("refused: \(row.text)")
    }

    @Test func oneFormOnly() throws {
        var draft = Draft(
            method: "GET", target: Array("/a?\(SigV4ReadingTests.query)".utf8), authority: "h.example")
        draft.setField("X-Amz-Date", to: "20270115T080000Z")
        draft.setField("Authorization", to: SigV4ReadingTests.header)
        #expect(refusal(of: draft.request())?.code == .malformed)
    }

    @Test func onlyItsOwnTracesAreIts() throws {
        for (target, authorization, trace) in [
            ("/", nil, .absent), ("/", "Bearer abc", .absent), ("/", "aws4-hmac-sha256 x", .absent),
            ("/", "AWS4-HMAC-SHA256", .present), ("/", "AWS4-ECDSA-P256-SHA256 x", .present),
            ("/?X-Amz-Signature=", nil, .present), ("/?a=1&X-Amz-Algorithm=x", nil, .present),
            ("/?x-amz-signature=1", nil, .absent), ("/?aX-Amz-Signature=1", nil, .absent),
            ("/X-Amz-Signature=1", nil, .absent), ("/?X-Amz-Signature", nil, .absent),
        ] as [(String, String?, SchemeDetection)] {
            var draft = Draft(method: "GET", target: Array(target.utf8), authority: "h.example")
            if let authorization { draft.setField("Authorization", to: authorization) }
            #expect(SigV4().detect(in: draft.request()) == trace, "\(target) \(authorization ?? "")")
        }
    }

    private static let digits = String(repeating: "0a", count: 32)
    private static let header =
        """
        AWS4-HMAC-SHA256 Credential=AKID/20270115/eu/api/aws4_request, SignedHeaders=host;x-amz-date, \
        Signature=\(digits)
        """
    private static let query =
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20270115%2Feu%2Fapi%2Faws4_request"
        + "&X-Amz-Date=20270115T080000Z&X-Amz-Expires=300&X-Amz-SignedHeaders=host&X-Amz-Signature=\(digits)"

    private static let headerTable: [(change: String, to: String, code: Refusal.Code?)] = [
        ("unchanged", "", nil),
        (", ", ",", nil),
        (", ", " , ", nil),
        ("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256   ", nil),
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512", .malformed),
        ("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256,", .malformed),
        ("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 ,", .malformed),
        (", SignedHeaders", ",, SignedHeaders", .malformed),
        (", SignedHeaders", ", Region=eu, SignedHeaders", .malformed),
        (", SignedHeaders", ", Credential=AKID/20270115/eu/api/aws4_request, SignedHeaders", .malformed),
        (", Signature", ", Signature=\(digits), Signature", .malformed),
        (", SignedHeaders=host;x-amz-date", "", .malformed),
        (", Signature=\(digits)", "", .malformed),
        (digits, digits.uppercased(), .malformed),
        (digits, digits + "0a", .malformed),
        (digits, String(digits.dropLast()), .malformed),
        (digits, "", .malformed),
        (digits, digits + ",", .malformed),
        ("aws4_request", "aws4_requests", .malformed),
        ("AKID/", "", .malformed),
        ("AKID/", "/", .malformed),
        ("AKID/", "a/b/", nil),
        ("AKID/", String(repeating: "k", count: 65) + "/", .malformed),
        ("AKID/", String(repeating: "k", count: 5000) + "/", .malformed),
        ("20270115/eu", "2027011/eu", .malformed),
        ("20270115/eu", "2027011x/eu", .malformed),
        ("20270115/eu", "20270114/eu", .malformed),
        ("/eu/", "//", .malformed),
        ("/eu/", "/e u/", .malformed),
        ("/eu/", "/\(String(repeating: "e", count: 64))/", nil),
        ("/eu/", "/\(String(repeating: "e", count: 65))/", .malformed),
        ("/api/", "/a%70i/", .malformed),
        ("host;x-amz-date", "x-amz-date;host", .malformed),
        ("host;x-amz-date", "host;host;x-amz-date", .malformed),
        ("host;x-amz-date", "Host;x-amz-date", .malformed),
        ("host;x-amz-date", "host;;x-amz-date", .malformed),
        ("host;x-amz-date", "host;x-amz-date;", .malformed),
        ("host;x-amz-date", ";host;x-amz-date", .malformed),
        ("host;x-amz-date", "", .malformed),
        ("host;x-amz-date", "ho st;x-amz-date", .malformed),
        ("host;x-amz-date", (100..<164).map { "a\($0);" }.joined() + "host;x-amz-date", .malformed),
        ("host;x-amz-date", "host", .badSignature),
        ("host;x-amz-date", "x-amz-date", .badSignature),
        ("host;x-amz-date", "host;x-absent;x-amz-date", .badSignature),
        ("20270115T080000Z", "20270115T080000", .malformed),
        ("20270115T080000Z", "20270115T240000Z", .malformed),
        ("20270115T080000Z", "2027-01-15T08:00:00Z", .malformed),
        ("without", "X-Amz-Date", .malformed),
        ("+", "X-Amz-Date:20270115T080000Z", .malformed),
        ("+", "Authorization:Bearer abc", .malformed),
        ("+", "X-Amz-Meta-A:1", .badSignature),
        ("+", "X-Amz-Content-Sha256:\(digits)", .badSignature),
        ("+", "X-Other:1", nil),
        ("+", "Date:nonsense", nil),
        ("?", "/a?b=%zz", .malformed),
        ("?", "/a?b=%4", .malformed),
        ("?", "/a?b=%00", .malformed),
        ("?", "/a?b=1&", .malformed),
        ("?", "/a?&b=1", .malformed),
        ("?", "/a?=1", .malformed),
        ("?", "/a?", nil),
        ("?", "*", nil),
        ("?", "/a?b=\u{e9}", .malformed),
        ("?", "/a b", .malformed),
        ("?", "/a?" + (0..<256).map { "p\($0)" }.joined(separator: "&"), nil),
        ("?", "/a?" + (0..<257).map { "p\($0)" }.joined(separator: "&"), .malformed),
    ]

    private static let queryTable: [(change: String, to: String, code: Refusal.Code?)] = [
        ("unchanged", "", nil),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA256&", "", .malformed),
        ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1", .malformed),
        ("&X-Amz-Date=20270115T080000Z", "", .malformed),
        ("20270115T080000Z", "20270116T080000Z", .malformed),
        ("20270115T080000Z", "nonsense", .malformed),
        ("&X-Amz-Expires=300", "", .malformed),
        ("Expires=300", "Expires=", .malformed),
        ("Expires=300", "Expires=0", .malformed),
        ("Expires=300", "Expires=1", nil),
        ("Expires=300", "Expires=604800", nil),
        ("Expires=300", "Expires=604801", .malformed),
        ("Expires=300", "Expires=0300", .malformed),
        ("Expires=300", "Expires=-1", .malformed),
        ("Expires=300", "Expires=3e2", .malformed),
        ("Expires=300", "Expires=%2B300", .malformed),
        ("Expires=300", "Expires=99999999999999999999999", .malformed),
        ("&X-Amz-SignedHeaders=host", "", .malformed),
        ("SignedHeaders=host", "SignedHeaders=", .malformed),
        ("SignedHeaders=host", "SignedHeaders=Host", .malformed),
        ("SignedHeaders=host", "SignedHeaders=host%3Bx-absent", .badSignature),
        ("SignedHeaders=host", "SignedHeaders=x-absent", .badSignature),
        ("SignedHeaders=host", "SignedHeaders=date%3Bhost", .malformed),
        ("&X-Amz-Signature=\(digits)", "&X-Amz-Signature=", .malformed),
        ("&X-Amz-Signature=\(digits)", "", .malformed),
        (digits, digits.uppercased(), .malformed),
        ("&X-Amz-Date", "&X-Amz-Expires=300&X-Amz-Date", .malformed),
        ("&X-Amz-Date", "&X-Amz-Signature=\(digits)&X-Amz-Date", .malformed),
        ("&X-Amz-Date", "&X-Amz-Unknown=1&X-Amz-Date", nil),
        ("AKID%2F", "AKID", .malformed),
        ("AKID%2F", "AKID/", nil),
        ("AKID%2F", "AKID%zz", .malformed),
        ("AKID%2F", "AKID%00%2F", .malformed),
        ("AKID%2F", "A+KID%2F", .malformed),
    ]

    private static let timesTable: [(name: String, text: String, seconds: Int64?)] = [
        ("X-Amz-Date", "20270115T080000Z", 1_800_000_000),
        ("X-Amz-Date", "20240229T235959Z", 1_709_251_199),
        ("X-Amz-Date", "20230229T000000Z", nil),
        ("X-Amz-Date", "Fri, 15 Jan 2027 08:00:00 GMT", nil),
        ("Date", "20270115T080000Z", 1_800_000_000),
        ("Date", "Fri, 15 Jan 2027 08:00:00 GMT", 1_800_000_000),
        ("Date", "Fri, 15 Jan 2027 08:00:00 -0000", 1_800_000_000),
        ("Date", "Fri, 15 Jan 2027 08:00:00 +0000", 1_800_000_000),
        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Date", "Fri, 15 Jan 2027 08:00:00 CET", nil),
        ("Date", "Fri, 15 Jan 2027 08:00:00 +0100", nil),
        ("Date", "Friday, 15-Jan-27 08:00:00 GMT", nil),
        ("Date", "Fri, 15 Foo 2027 08:00:00 GMT", nil),
        ("Date", "Fri, 15 Jan 2027 24:00:00 GMT", nil),
        ("Date", "Fri, 31 Feb 2027 08:00:00 GMT", nil),
        ("Date", "", nil),
    ]
}
