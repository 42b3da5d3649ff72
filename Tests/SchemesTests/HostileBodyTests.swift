// Bodies that anybody can send, to be as slow to read as they can be: twice the body takes no more than twice the time,
// with room for noise, whichever scheme it claims to be signed with.
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct HostileBodyTests {
    @Test("reading is linear in the body", arguments: shapesTable)
    func linear(_ shape: Shape) {
        let (half, whole) = (time(shape, bytes: 256 << 10), time(shape, bytes: 512 << 10))
        // Below a tenth of a millisecond it does not matter, and cannot be measured.
        #expect(whole < max(half * 3, 100_000), "\(half) ns, then \(whole) ns")
    }

    @Test("a form in which nobody signs costs no more than a short one", arguments: formsTable)
    func forms(_ shape: Shape) {
        let (short, long) = (time(shape, bytes: 16 << 10), time(shape, bytes: 1 << 20))
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
            draft.fields = fields + [Draft.Field("Content-Type", type)]
            let count = max(0, bytes - start.utf8.count - end.utf8.count) / repeated.utf8.count
            draft.body = Array((start + String(repeating: repeated, count: count) + end).utf8)
            return draft.request()
        }
    }

    private static let formsTable =
        ["a&", "&", "=&", "a=&", "s&", "%&", "app_id&", "%61pp_id=1&", "auth_version=2&", "auth_&", "a;", "%61"].map {
            Shape(testDescription: "\($0)…", repeated: $0)
        }

    private static let zeros = String(repeating: "0", count: 64)
    private static let objects = [
        Draft.Field("X-Auth-Version", "4"), Draft.Field("X-Auth-Client-ID", "k"), Draft.Field("X-Auth-Timestamp", "1"),
        Draft.Field("X-Auth-Signature", zeros),
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
            ("{\"a\":\"", "%", "\"}"), ("{\"a\":\"", "\\u0061", "\"}"), ("{\"a\":\"", "\\\\", "\"}"), ("{", " ", "}"),
            ("{\"a\":[", "1,", "1]}"), ("{\"a\":[", "[],", "1]}"), ("{\"a\":[", "{\"b\":1},", "1]}"),
            ("{\"", "B", "\":1}"), ("{", "\"a\":1,", "\"b\":1}"), ("{\"a\":", "[", ""), ("{\"a\":1", "1", "}"),
        ].map { (start: String, repeated: String, end: String) in
            Shape(
                testDescription: "auth-v4 \(start)\(repeated)…", type: "application/json", start: start,
                repeated: repeated, end: end, fields: objects)
        }

    private func time(_ shape: Shape, bytes: Int) -> UInt64 {
        let request = shape.request(bytes: bytes)
        var workspace = Workspace()
        return shortestTime(ofRuns: 4) { _ = try? Registry.standard.claim(in: request, &workspace) }
    }
}
