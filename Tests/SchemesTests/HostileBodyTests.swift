// Bodies that anybody can send, to be as slow to read as they can be: twice the body takes no more than twice
// the time, with room for noise, whichever scheme it claims to be signed with.
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct HostileBodyTests {
    @Test("reading is linear in the body", arguments: shapesTable)
    func linear(_ shape: Shape) {
        // Below a tenth of a millisecond it does not matter, and cannot be measured.
        let (half, whole) = times(shape, bytes: 256 << 10, 512 << 10) { $1 < max($0 * 3, 100_000) }
        #expect(whole < max(half * 3, 100_000), "\(half) ns, then \(whole) ns")
    }

    @Test("a form in which nobody signs costs no more than a short one", arguments: formsTable)
    func forms(_ shape: Shape) {
        let (short, long) = times(shape, bytes: 16 << 10, 1 << 20) { $1 < max($0 * 4, 400_000) }
        #expect(long < max(short * 4, 400_000), "\(short) ns, then \(long) ns")
    }

    struct Shape: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var type = "application/x-www-form-urlencoded"
        var start = ""
        var repeated: String
        var end = ""
        var fields: [Draft.Field] = []

        func request(bytes: Int) -> Request {
            var draft = Draft(method: "POST", target: Array("/".utf8), authority: "h.example")
            draft.fields = fields + [Draft.Field(name: "Content-Type", value: type)]
            let count = max(0, bytes - start.utf8.count - end.utf8.count) / repeated.utf8.count
            draft.body = Array((start + String(repeating: repeated, count: count) + end).utf8)
            return draft.request()
        }
    }

    private static let formsTable =
        [
            "a&", "&", "=&", "a=&", "s&", "%&", "app_id&", "%61pp_id=1&", "auth_version=2&", "auth_&", "a;",
            "%61",
        ].map {
            Shape(testDescription: "\($0)…", repeated: $0)
        }

    private static let zeros = String(repeating: "0", count: 64)
    private static let objects = [
        Draft.Field(name: "X-Auth-Version", value: "4"), Draft.Field(name: "X-Auth-Client-ID", value: "k"),
        Draft.Field(name: "X-Auth-Timestamp", value: "1"),
        Draft.Field(name: "X-Auth-Signature", value: zeros),
    ]

    private static let shapesTable =
        formsTable + [
            Shape(testDescription: "form-md5", start: "app_id=1&sign=1&", repeated: "a&"),
            Shape(testDescription: "form-md5, one value", start: "app_id=1&sign=1&a=", repeated: "%41"),
            Shape(testDescription: "auth-v1", start: "auth_signature=1&", repeated: "a[]=1&"),
            Shape(testDescription: "auth-v1, one value", start: "auth_signature=1&a=", repeated: "+"),
            Shape(testDescription: "auth-v2, one name", start: "auth_key=1&auth_version=2&", repeated: "A"),
        ]
        + [
            ("{\"a\":\"", "%", "\"}"), ("{\"a\":\"", "\\u0061", "\"}"), ("{\"a\":\"", "\\\\", "\"}"),
            ("{", " ", "}"), ("{\"a\":[", "1,", "1]}"), ("{\"a\":[", "[],", "1]}"),
            ("{\"a\":[", "{\"b\":1},", "1]}"), ("{\"", "B", "\":1}"), ("{", "\"a\":1,", "\"b\":1}"),
            ("{\"a\":", "[", ""), ("{\"a\":1", "1", "}"),
        ].map { (start: String, repeated: String, end: String) in
            Shape(
                testDescription: "auth-v4 \(start)\(repeated)…", type: "application/json", start: start,
                repeated: repeated, end: end, fields: objects)
        }

    /// The times for two lengths. On a busy machine a pair can be disturbed, so up to five are measured until
    /// one is in bounds; a reader that is not linear is out of bounds each time.
    private func times(
        _ shape: Shape, bytes first: Int, _ second: Int, inBounds: (UInt64, UInt64) -> Bool
    ) -> (UInt64, UInt64) {
        var pair = (time(shape, bytes: first), time(shape, bytes: second))
        for _ in 0..<4 where !inBounds(pair.0, pair.1) {
            pair = (time(shape, bytes: first), time(shape, bytes: second))
        }
        return pair
    }

    private func time(_ shape: Shape, bytes: Int) -> UInt64 {
        let request = shape.request(bytes: bytes)
        var workspace = Workspace()
        return shortestTime(ofRuns: 4) {
            _ = try? SchemeRegistry.standard.claim(in: request, workspace: &workspace)
        }
    }
}
