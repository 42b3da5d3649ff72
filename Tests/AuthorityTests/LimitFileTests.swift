import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

@Suite struct LimitFileTests {
    private let folder = TemporaryFolder()
    private let now: Int64 = 1_700_000_000_000
    private var path: String { "\(folder.path)/login-limits" }

    private func rules() -> LoginLimits.Rules {
        var rules = LoginLimits.Rules()
        rules.account = RateLimit(burst: 1, refillInterval: .seconds(60))
        rules.capacity = 1 << 12
        return rules
    }

    private func start(_ limits: LoginLimits) throws -> LoginLimits.Decision {
        limits.start(
            app: try #require(AppName("demo")), account: try AccountName(normalizing: "bob"),
            from: .stranger(.unknown), at: now)
    }

    @Test("what one process counted, the next counts on; nobody else reads it")
    func kept() throws {
        let file = LimitFile(path)
        guard case .none = try file.read(rules(), at: now) else {
            return #expect(Bool(false), "there was none")
        }
        let limits = LoginLimits(rules())
        let before = limits.changes
        _ = try start(limits)
        #expect(limits.changes != before)
        try file.write(limits.snapshots(at: now))
        try file.write(limits.snapshots(at: now))
        guard case .limits(let again) = try file.read(rules(), at: now) else {
            return #expect(Bool(false), "not restored")
        }
        #expect(try start(again) == .retry(after: 60, for: .account))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["login-limits"])
    }

    @Test("a file that is cut short, lengthened or altered is damaged, wherever")
    func damaged() throws {
        let file = LimitFile(path)
        let limits = LoginLimits(rules())
        _ = try start(limits)
        try file.write(limits.snapshots(at: now))
        let whole = [UInt8](try #require(FileManager.default.contents(atPath: path)))
        var variants = stride(from: 0, to: whole.count, by: 7).map { Array(whole[..<$0]) } + [whole + [0]]
        for index in stride(from: 0, to: whole.count, by: 5) {
            var altered = whole
            altered[index] ^= 0x10
            variants.append(altered)
        }
        for variant in variants {
            _ = FileManager.default.createFile(atPath: path, contents: Data(variant))
            guard case .damaged = try file.read(rules(), at: now) else {
                return #expect(Bool(false), "\(variant.count) bytes taken")
            }
        }
        _ = FileManager.default.createFile(atPath: path, contents: Data(whole))
        var larger = rules()
        larger.capacity = 1 << 13
        guard case .damaged = try file.read(larger, at: now) else {
            return #expect(Bool(false), "another size")
        }
    }

    @Test("a file that does not begin with the first word is damaged")
    func otherLayout() throws {
        try LimitFile(path).write(LoginLimits(rules()).snapshots(at: now))
        let whole = try #require(FileManager.default.contents(atPath: path))
        _ = FileManager.default.createFile(atPath: path, contents: whole.dropFirst(8))
        guard case .damaged = try LimitFile(path).read(rules(), at: now) else {
            return #expect(Bool(false), "read")
        }
    }

    @Test("a disk that takes nothing is a fault, and leaves what was there")
    func unwritable() throws {
        let file = LimitFile("\(folder.path)/missing/login-limits")
        #expect(throws: OperationalError.self) { try file.write(LoginLimits(rules()).snapshots(at: now)) }
    }
}
