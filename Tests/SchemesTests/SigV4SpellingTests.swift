import CountersignSeal
import CountersignWire
import TestRounds
import Testing

@testable import CountersignSchemes

/// That a signature for one request opens no other, whichever of its spellings was signed.
@Suite struct SigV4SpellingTests {
    @Test("no two meanings share a spelling", arguments: ["execute-api", "s3"])
    func oneMeaning(_ service: String) throws {
        var random = seededRandom()
        var meanings: [String: String] = [:]
        var spelled: [Int: Int] = [:]
        let rounds = rounds(20_000)
        for _ in 0..<rounds {
            let target = Draw.target(&random)
            let meaning = Draw.meaning(of: target, isExact: service == "s3")
            for (number, text) in try spellings(of: target, service).enumerated() {
                spelled[number, default: 0] += 1
                guard let other = meanings.updateValue(meaning, forKey: text), other != meaning else {
                    continue
                }
                Issue.record("\(target): \(other) and \(meaning) are both spelled \(text)")
            }
        }
        #expect(Set(meanings.values).count > rounds / 10)
        #expect(
            spelled[1, default: 0] > rounds / 20 && spelled[2, default: 0] > rounds / 20,
            "spellings seldom tried: \(spelled)")
    }

    @Test("which paths are taken as written", arguments: pathsTable)
    func asWritten(_ row: (path: String, isTaken: Bool)) throws {
        let texts = try spellings(of: row.path, "execute-api")
        #expect(texts.contains("GET\n\(row.path)\n") == row.isTaken)
    }

    /// Escaped anew these are in order; as they were sent they are not.
    @Test func orderOfTheEscapedIsNotThatOfTheWritten() throws {
        let texts = try spellings(of: "/?b:=1&b%C3%BC=2", "execute-api")
        #expect(
            texts == [
                "GET\n/\nb%3A=1&b%C3%BC=2", "GET\n/\nb%C3%BC=2&b:=1", "GET\n/\nb:=1&b%C3%BC=2",
            ])
    }

    @Test func presignedQueriesAreSorted() throws {
        var draft = Draft(method: "GET", target: Array("/a%20b?z=1&a=2".utf8), authority: "h.example")
        try SigV4().presign(&draft, as: credentials("AKID"), at: 1_800_000_000, lifetime: 60)
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try SigV4().claim(in: request, workspace: &workspace))
        try SigV4().writeStringToSign(for: claim, of: request, into: &workspace)
        #expect(try SigV4().writeAlternative(0, for: claim, of: request, into: &workspace) == .exhausted)
    }

    /// The first lines of each spelling that is offered: method, path and query.
    private func spellings(of target: String, _ service: String) throws -> [String] {
        var draft = Draft(method: "GET", target: Array(target.utf8), authority: "h.example")
        var signer = try credentials("AKID")
        signer.service = service
        try SigV4().sign(&draft, as: signer, at: 1_800_000_000, nonce: "")
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try SigV4().claim(in: request, workspace: &workspace))
        try SigV4().writeStringToSign(for: claim, of: request, into: &workspace)
        var texts: [String] = []
        repeat {
            let lines = workspace.canonicalRequest.split(separator: "\n", omittingEmptySubsequences: false)
            texts.append(lines[..<3].joined(separator: "\n"))
        } while try SigV4().writeAlternative(texts.count - 1, for: claim, of: request, into: &workspace)
            == .written
        return texts
    }

    private static let pathsTable: [(path: String, isTaken: Bool)] = [
        ("/", true), ("/a", true), ("/a//b", true), ("/a/../b", true), ("/a;b", true), ("/a%20b", true),
        ("/%C3%BC", true), ("/%c3%bc", true), ("/%3a", true), ("/%41", true), ("/%2F", true),
        ("/a;%25", true),
        ("/a%2520b", false), ("/%25", false), ("/%3A", false), ("/a/%3Bb", false), ("/a%20b%2520", true),
        ("/%zz", true), ("/%2", true), ("/%", true), ("/%7F", true), ("/%7E", true), ("/%40/%7e", true),
    ]
}

private enum Draw {
    static func target(_ random: inout some RandomNumberGenerator) -> String {
        let segments = [
            "a", "b", "", ".", "..", ":", "%3A", "%253A", "%25253A", "%20", "%2520", "%252520", "%41",
            "%2541", "%25",
            "%2525", "%c3%bc", "%C3%BC", "%25C3%25BC", ";", "%3B", "%253B", "%2F", "%252F", "a;%3B", "%3b",
        ]
        let pairs = [
            "a=1", "a=2", "a=", "a", "b", "b=%31", "a=%31", "%61=1", "c=+", "c=%20", "c=%2B", "c=%2b", "a==",
            "a=%3D", "a%3D=", "a%26b=1", "b=1", "d=:", "d=%3A", "d=%253A", "a-b=1", "a.=1",
        ]
        var path = ""
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            path += "/" + (segments.randomElement(using: &random) ?? "")
        }
        let query = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            pairs.randomElement(using: &random) ?? "a"
        }
        return path + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    /// What a backend makes of a target. Escapes of a path are left as they are: `%2F` is no slash, and `%41`
    /// may be another resource than `A`. Of a query they mean what they stand for, but `+` is neither a space
    /// nor `%2B`. Parameters have no order, and an empty value is none: docs/protocol.md says so, and the
    /// scheme's coverage.
    static func meaning(of target: String, isExact: Bool) -> String {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var path = String(parts[0])
        if !isExact {
            var kept: [Substring] = []
            for segment in path.split(separator: "/") where segment != "." {
                if segment == ".." { _ = kept.popLast() } else { kept.append(segment) }
            }
            path = "/" + kept.joined(separator: "/") + (path.hasSuffix("/") && !kept.isEmpty ? "/" : "")
        }
        let parameters = (parts.count > 1 ? parts[1].split(separator: "&") : []).map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return decoded(sides[0]) + "\u{1}" + (sides.count > 1 ? decoded(sides[1]) : "")
        }
        return "\(path) \(parameters.sorted())"
    }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.replacing("+", with: "\u{2}").utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = PercentEncoding.byte(in: Array(rest).span, at: 0) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
