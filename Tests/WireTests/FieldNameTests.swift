// Proves that a field's name is identified as a comparison of whole texts would, that no similar name is taken
// for it, and what follows from a name for forwarding.
import CountersignWire
import Testing

@Suite("Field names")
struct FieldNameTests {
    /// The known names, the names with traits, and those that have both.
    private static let table: [(text: String, name: FieldName, traits: FieldTraits)] = [
        ("accept", .accept, .isHarmless), ("accept-encoding", .other, .isHarmless),
        ("accept-", .other, .isHarmless), ("authorization", .authorization, []),
        ("connection", .connection, .endsAtHop), ("content-digest", .contentDigest, []),
        ("content-encoding", .contentEncoding, []), ("content-length", .contentLength, .endsAtHop),
        ("content-type", .contentType, []), ("countersign", .other, .isReserved),
        ("countersign-a", .other, .isReserved), ("countersign_release", .other, .isReserved),
        ("countersign-release", .countersignRelease, .isReserved),
        ("countersign-ticket", .countersignTicket, .isReserved), ("countersigns", .other, []),
        ("date", .date, []), ("expect", .expect, .endsAtHop), ("host", .host, .isHarmless),
        ("http2-settings", .other, .endsAtHop), ("idempotency-key", .idempotencyKey, []),
        ("keep-alive", .other, .endsAtHop), ("proxy-authenticate", .other, .endsAtHop),
        ("proxy-authorization", .other, .endsAtHop), ("proxy-connection", .other, .endsAtHop),
        ("signature", .signature, []), ("signature-input", .signatureInput, []), ("te", .other, .endsAtHop),
        ("traceparent", .traceparent, .isHarmless), ("tracestate", .tracestate, .isHarmless),
        ("trailer", .other, .endsAtHop), ("transfer-encoding", .transferEncoding, .endsAtHop),
        ("upgrade", .other, .endsAtHop), ("user-agent", .userAgent, .isHarmless),
        ("x-amz-content-sha256", .xAmzContentSHA256, []), ("x-amz-date", .xAmzDate, []),
        ("x-auth-client-id", .xAuthClientID, []), ("x-auth-signature", .xAuthSignature, []),
        ("x-auth-timestamp", .xAuthTimestamp, []), ("x-auth-version", .xAuthVersion, []),
        ("x-request-id", .xRequestID, .isHarmless), ("baggage", .other, []), ("x-a", .other, []),
        ("cookie", .other, []), ("", .other, []),
    ]

    /// By whole texts. Names with the beginnings `accept-` and `countersign` are families.
    private func expected(_ name: [UInt8]) -> (FieldName, FieldTraits) {
        let text = String(decoding: name, as: UTF8.self)
        if let row = FieldNameTests.table.first(where: { Array($0.text.utf8) == name }) {
            return (row.name, row.traits)
        }
        if text.hasPrefix("accept-") { return (.other, .isHarmless) }
        guard name.starts(with: "countersign".utf8), let next = name.dropFirst(11).first else {
            return (.other, [])
        }
        return (.other, ASCII.isLetter(next) || ASCII.isDigit(next) ? [] : .isReserved)
    }

    @Test("each name, in lower and in upper case", arguments: FieldNameTests.table)
    func names(_ row: (text: String, name: FieldName, traits: FieldTraits)) {
        for text in [row.text, row.text.uppercased()] {
            let identity = FieldIdentity(caseless: Array(text.utf8).span)
            #expect(identity.name == row.name && identity.traits == row.traits, "\(text)")
        }
        #expect(FieldName(Array(row.text.utf8).span) == row.name)
    }

    @Test("no byte may differ but in the case of a letter", arguments: FieldNameTests.table)
    func neighbours(_ row: (text: String, name: FieldName, traits: FieldTraits)) {
        let name = Array(row.text.utf8)
        for place in name.indices {
            for byte in UInt8.min...UInt8.max {
                var other = name
                other[place] = byte
                let exact = FieldIdentity(exactly: other.span)
                var wanted = expected(other)
                #expect(
                    exact.name == wanted.0 && exact.traits == wanted.1, "\(row.text): \(byte) at \(place)")
                let caseless = FieldIdentity(caseless: other.span)
                wanted = expected(other.map { ASCII.lowercased($0) })
                #expect(
                    caseless.name == wanted.0 && caseless.traits == wanted.1,
                    "\(row.text): \(byte) at \(place), without case")
            }
        }
        for other in [name + [UInt8(ascii: "x")], Array(name.dropLast())] {
            let (identity, wanted) = (FieldIdentity(exactly: other.span), expected(other))
            #expect(identity.name == wanted.0 && identity.traits == wanted.1)
        }
    }

    @Test("a field that was not looked up stays here")
    func unidentified() {
        let field = Request.Field(name: .empty, value: .empty)
        #expect(field.traits.staysHere)
    }

    @Test("elements are replaced by more, as many and fewer")
    func replacing() {
        var bytes: [UInt8] = []
        let copy: [UInt8] = [9, 9, 9]
        for count in [3, 3, 5, 2, 0, 1] {
            let new = (0..<count).map { UInt8($0 + count) }
            bytes.replaceAll(with: new.span)
            #expect(bytes == new)
        }
        bytes = copy
        bytes.replaceAll(with: [1, 2].span)
        #expect(bytes == [1, 2] && copy == [9, 9, 9])
    }
}
