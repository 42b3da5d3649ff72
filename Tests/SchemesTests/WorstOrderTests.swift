import CountersignSchemes
import CountersignWire
import Testing

/// Requests that anybody can make, to be as slow to read as they can be.
@Suite struct WorstOrderTests {
    @Test(
        "names of kilobytes that begin alike, backwards, are read as fast as others", arguments: shapesTable)
    func names(_ shape: Shape) throws {
        let prefix = String(repeating: "z", count: 4000)
        let names = (0..<240).map { 999 - $0 }
        // As many bytes, which differ at their beginning: to compare these takes no time.
        let plain = try time(shape, KeyValuePairs(names.map { "\($0)\(prefix)" }))
        let worst = try time(shape, KeyValuePairs(names.map { "\(prefix)\($0)" }))
        #expect(worst < plain * 4)
    }

    struct Shape: Sendable, CustomTestStringConvertible {
        var scheme: any Scheme
        var join: @Sendable (KeyValuePairs) -> Draft

        var testDescription: String { scheme.name.rawValue }
    }

    /// Names and values in that order.
    struct KeyValuePairs: ExpressibleByDictionaryLiteral {
        var all: [(String, String)]

        init(dictionaryLiteral elements: (String, String)...) { all = elements }
        init(_ names: [String]) { all = names.map { ($0, "") } }
    }

    static let shapesTable = [
        Shape(scheme: AuthV1()) {
            form($0, "auth_key=k&auth_timestamp=1&auth_version=1.0&auth_signature=\(zeros)")
        },
        Shape(scheme: FormMD5()) {
            form(
                $0,
                "app_id=k&plat=p&ver=1&rand=12345678&timestamp=2026-01-01-00:00:00&sign=\(zeros.prefix(32))")
        },
        Shape(scheme: AuthV4()) { pairs in
            var draft = Draft(method: "POST", target: Array("/".utf8), authority: "h.example")
            draft.setField("X-Auth-Version", to: "4")
            draft.setField("X-Auth-Client-ID", to: "k")
            draft.setField("X-Auth-Timestamp", to: "1")
            draft.setField("X-Auth-Signature", to: zeros)
            draft.body = Array("{\(pairs.all.map { "\"\($0)\":\"\($1)\"" }.joined(separator: ","))}".utf8)
            return draft
        },
    ]

    private static let zeros = String(repeating: "0", count: 64)

    private static func form(_ pairs: KeyValuePairs, _ base: String) -> Draft {
        var draft = Draft(method: "POST", target: Array("/".utf8), authority: "h.example")
        draft.setField("Content-Type", to: "application/x-www-form-urlencoded")
        draft.body = Array((pairs.all.map { "\($0)=\($1)" } + [base]).joined(separator: "&").utf8)
        return draft
    }

    private func time(_ shape: Shape, _ pairs: KeyValuePairs) throws -> UInt64 {
        let request = shape.join(pairs).request()
        var workspace = Workspace()
        return try shortestTime(ofRuns: 5) {
            let claim = try shape.scheme.claim(in: request, workspace: &workspace)
            #expect(claim != nil)
        }
    }
}
