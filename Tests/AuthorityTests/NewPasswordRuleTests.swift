import CountersignGate
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

@Suite struct NewPasswordRuleTests {
    private static let files = PolicyFiles(folder: FileManager.default.temporaryDirectory.path)

    private static func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }

    /// A list of so many passwords, `known-0` and on, in the published form.
    private static func list(of count: Int, feed: String = "\n", ends: Bool = true) throws -> String {
        let lines = (0..<count).map { number in
            let hash = Hex.encode(SHA1.digest(secret("known-\(number)")).span).uppercased()
            return number % 2 == 0 ? "\(hash):\(number + 1)" : hash
        }
        let text = lines.sorted().joined(separator: feed) + (ends && count > 0 ? feed : "")
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-list-\(UUID().uuidString)"
        ).path
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test("SHA-1 of `abc`, as FIPS 180-4's example has it")
    func digest() {
        #expect(
            Hex.encode(SHA1.digest(Self.secret("abc")).span) == "a9993e364706816aba3e25717850c26c9cd0d89d")
    }

    @Test("each line is found, and nothing else", arguments: [0, 1, 2, 3, 100, 1_000])
    func found(_ count: Int) throws {
        for (feed, ends) in [("\n", true), ("\r\n", true), ("\n", false)] {
            let path = try Self.list(of: count, feed: feed, ends: ends)
            defer { try? FileManager.default.removeItem(atPath: path) }
            let list = BreachedPasswords(path, files: Self.files)
            for number in 0..<count {
                #expect(try list.contains(Self.secret("known-\(number)")), "\(number) of \(count)")
            }
            for number in 0..<100 { #expect(try !list.contains(Self.secret("unknown-\(number)"))) }
        }
    }

    @Test("a list that cannot be read lets nothing pass")
    func unreadable() throws {
        var policy = Policy()
        policy.breachedPasswords = "/nowhere/list"
        #expect(throws: OperationalError.self) {
            try NewPasswordRule(policy, files: Self.files).rejection(of: Self.secret("correct horse"))
        }
        for text in [
            "not a list\n", String(repeating: "a", count: 5_000), String(repeating: "\n", count: 200),
        ] {
            let path = try Self.list(of: 0)
            defer { try? FileManager.default.removeItem(atPath: path) }
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            policy.breachedPasswords = path
            #expect(throws: OperationalError.self) {
                try NewPasswordRule(policy, files: Self.files).rejection(of: Self.secret("correct horse"))
            }
        }
    }

    /// The lines of `list` in another order.
    private static func reordered(_ count: Int, by order: ([String]) -> [String]) throws -> String {
        let path = try list(of: count)
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
        try order(lines).map { $0 + "\n" }.joined().write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    @Test("a list that is not sorted is refused when it is set, and by look-ups that see it")
    func unsorted() throws {
        let orders: [(name: String, order: ([String]) -> [String], isSeen: Bool)] = [
            ("by prevalence", { lines in lines.sorted { $0.suffix(3) > $1.suffix(3) } }, true),
            ("descending", { $0.reversed() }, true),
            ("one behind another", { $0.suffix($0.count / 2) + $0.prefix($0.count / 2) }, false),
            ("one line moved", { Array($0.dropFirst()) + $0.prefix(1) }, false),
        ]
        for (name, order, isSeen) in orders {
            let path = try Self.reordered(2_000, by: order)
            defer { try? FileManager.default.removeItem(atPath: path) }
            #expect(throws: OperationalError.self, "\(name)") {
                try BreachedPasswords(path, files: Self.files).check()
            }
            guard isSeen else { continue }
            let refused = (0..<100).count { number in
                (try? BreachedPasswords(path, files: Self.files).contains(Self.secret("unknown-\(number)")))
                    == nil
            }
            #expect(refused > 80, "\(name): \(refused)")
        }
        for count in [1, 2, 1_000] {
            let path = try Self.list(of: count)
            defer { try? FileManager.default.removeItem(atPath: path) }
            try BreachedPasswords(path, files: Self.files).check()
            // The same list twice, sorted together.
            let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            try lines.flatMap { [$0, $0] }.map { $0 + "\n" }.joined()
                .write(toFile: path, atomically: true, encoding: .utf8)
            try BreachedPasswords(path, files: Self.files).check()
            #expect(try BreachedPasswords(path, files: Self.files).contains(Self.secret("known-0")))
        }
        let empty = try Self.list(of: 0)
        defer { try? FileManager.default.removeItem(atPath: empty) }
        #expect(throws: OperationalError.self) { try BreachedPasswords(empty, files: Self.files).check() }
    }

    @Test("the rule names what it misses")
    func rule() throws {
        let path = try Self.list(of: 10)
        defer { try? FileManager.default.removeItem(atPath: path) }
        var policy = Policy()
        policy.breachedPasswords = path
        let rule = NewPasswordRule(policy, files: Self.files)
        #expect(try rule.rejection(of: Self.secret("1234567")) == .tooShort(minimum: 8))
        #expect(try rule.rejection(of: Self.secret("ÄÖÜäöüß")) == .tooShort(minimum: 8))
        #expect(try rule.rejection(of: Self.secret("known-3")) == .tooShort(minimum: 8))
        policy.passwordMinimum = 1
        #expect(
            try NewPasswordRule(policy, files: Self.files).rejection(of: Self.secret("known-3")) == .breached)
        #expect(try rule.rejection(of: Self.secret("correct horse")) == nil)
    }

    @Test("only regular files below the folder are opened, and a pipe does not wait")
    func places() throws {
        let folder = TemporaryFolder()
        let (inside, outside) = ("\(folder.path)/lists", "\(folder.path)/other")
        for path in [inside, outside, "\(inside)/deep"] { mkdir(path, 0o700) }
        let files = PolicyFiles(folder: inside)
        let list = try Self.list(of: 10)
        defer { try? FileManager.default.removeItem(atPath: list) }
        func check(_ path: String) throws { try BreachedPasswords(path, files: files).check() }
        for place in ["\(inside)/list", "\(inside)/deep/list", "\(outside)/list"] {
            try FileManager.default.copyItem(atPath: list, toPath: place)
        }
        symlink("\(inside)/list", "\(inside)/link")
        symlink("\(inside)/deep/list", "\(outside)/link")
        for good in ["list", "deep/list", "deep/../list", "link"] { try check("\(inside)/\(good)") }
        try check("\(outside)/link")
        symlink("\(outside)/list", "\(inside)/out")
        symlink(outside, "\(inside)/folder")
        mkfifo("\(inside)/pipe", 0o600)
        for (bad, reason) in [
            ("\(outside)/list", "is not below"), ("\(inside)/../other/list", "is not below"),
            ("\(inside)/out", "is not below"), ("\(inside)/folder/list", "is not below"),
            ("/dev/zero", "is not below"), ("\(inside)/pipe", "is not a regular file"),
            ("\(inside)/deep", "is not a regular file"), (inside, "is not below"),
            ("\(inside)/nothing", "cannot be opened"), ("\(folder.path)/lists-2", "cannot be opened"),
        ] {
            let error = #expect(throws: OperationalError.self, "\(bad)") { try check(bad) }
            #expect(error?.message.contains(reason) == true, "\(bad): \(error?.message ?? "")")
        }
    }
}
