import CountersignSchemes
import CountersignWire
import Glibc
import Testing

@testable import CountersignGate

@Suite struct ReplayFileTests {
    private let now: Int64 = 1_800_000_000

    @Test(
        "what makes two requests the same",
        arguments: [
            ("k1", SchemeName.messageSignatures, "n1", Refusal.Code.replayed),
            ("k2", .messageSignatures, "n1", nil), ("k1", .formMD5, "n1", nil),
            ("k1", .messageSignatures, "n2", nil), ("k1n", .messageSignatures, "1", nil),
        ] as [(String, SchemeName, String, Refusal.Code?)])
    func sameness(_ row: (key: String, scheme: SchemeName, nonce: String, code: Refusal.Code?)) throws {
        let folder = try Folder()
        let file = try open(folder)
        #expect(code { try file.insertNow(entry("n1", key: "k1")) } == nil)
        #expect(code { try file.insertNow(entry(row.nonce, key: row.key, scheme: row.scheme)) } == row.code)
    }

    @Test func aPrefetchChangesNothingAndNamesTheEntry() throws {
        let folder = try Folder()
        let file = try open(folder)
        let known = try entry("n1").prefetched(by: file)
        let other = file.prefetch(try entry("n2"))
        #expect(known.fingerprint != nil && known.fingerprint != other)
        #expect(code { try file.lookUp(known) } == nil)
        #expect(code { try file.insertNow(known) } == nil)
        #expect(code { try file.lookUp(known) } == .replayed)
        #expect(code { try file.insertNow(entry("n1")) } == .replayed, "the same without a fingerprint")
        #expect(code { try file.insertNow(known) } == .replayed)
    }

    @Test func ofManyThreadsOneIsFirst() async throws {
        let folder = try Folder()
        let file = try open(folder)
        for round in 0..<200 {
            let entry = try entry("round \(round)")
            let admitted = await withTaskGroup(of: Bool.self, returning: Int.self) { group in
                for _ in 0..<4 { group.addTask { (try? file.insertNow(entry)) != nil } }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(admitted == 1)
        }
    }

    @Test func outlivesItsProcess() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.bootIDPath = try boot("a", folder)
        let pipe = try Pipe()
        let child = fork()
        if child == 0 {
            // Between fork and kill only async-signal-safe calls are allowed. The child first closes
            // inherited descriptors, since otherwise it holds the locks of files that concurrent tests have
            // open.
            pipe.closeAllOthers()
            let admitted =
                (try? ReplayFile(path: folder.path + "/replay", expecting: nil, settings: settings, now: now))
                .map { file in code { try file.insertNow(entry("n")) } == nil }
            pipe.send(admitted == true ? 1 : 0)
            kill(getpid(), SIGKILL)
        }
        #expect(pipe.receive() == 1)
        var status: Int32 = 0
        waitpid(child, &status, 0)
        #expect(status & 0x7F == SIGKILL, "the child was not killed")
        let file = try ReplayFile(path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
        #expect(file.report.condition == .intact)
        #expect(code { try file.insertNow(entry("n")) } == .replayed)
        #expect(code { try file.insertNow(entry("m")) } == nil)
    }

    /// As one that is between `fork` and `exec`: close-on-exec has not closed its copy of the lock yet.
    @Test func aChildProcessDoesNotKeepTheLock() throws {
        let folder = try Folder()
        var child: pid_t = -1
        do {
            let file = try open(folder)
            child = fork()
            if child == 0 { while true { pause() } }
            #expect(code { try file.insertNow(entry("n")) } == nil)
        }
        defer {
            var status: Int32 = 0
            kill(child, SIGKILL)
            waitpid(child, &status, 0)
        }
        try #require(child > 0)
        #expect(code { try open(folder).insertNow(entry("n")) } == .replayed)
    }

    @Test func aLockThatWasHandedOverIsKept() throws {
        let folder = try Folder()
        var file: ReplayFile? = try open(folder)
        let sharing = try #require(file?.handover)
        file = nil
        #expect { try open(folder) } throws: { error in
            (error as? OperationalError)?.message.contains("in use by process \(getpid())") == true
        }
        withExtendedLifetime(sharing) {}
    }

    @Test func anotherBootClosesTheGateForAWindow() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.window = 60
        settings.bootIDPath = try boot("a", folder)
        do {
            let file = try ReplayFile(
                path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
            #expect(file.report.condition == .firstStart)
            #expect(file.report.floor == nil)
        }
        settings.bootIDPath = try boot("b", folder)
        for attempt in 0..<2 {
            // The second opening is in the same boot, and must not forget what the first one decided.
            let file = try ReplayFile(
                path: folder.path + "/replay", expecting: nil, settings: settings, now: now + Int64(attempt))
            #expect(file.report.condition == (attempt == 0 ? .rebooted : .intact))
            #expect(file.report.floor == now + 60)
            let refusal = refusal {
                try file.insertNow(entry("n\(attempt)", created: now + 60, now: now + 10))
            }
            #expect(refusal?.code == .unavailable)
            #expect(refusal?.retryAfter == 51)
            #expect(
                code { try file.insertNow(entry("m\(attempt)", created: now + 61, now: now + 10)) } == nil)
        }
    }

    @Test func longLivesDoNotCloseTheGateForLonger() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.bootIDPath = try boot("a", folder)
        settings.window = 60
        settings.lifetime = 3600
        do {
            let file = try ReplayFile(
                path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
            #expect(code { try file.insertNow(entry("n", created: now - 3600)) } == nil)
            #expect(code { try file.insertNow(entry("n", created: now - 3600)) } == .replayed)
        }
        settings.bootIDPath = try boot("b", folder)
        let file = try ReplayFile(path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
        #expect(file.report.floor == now + 60)
        #expect(code { try file.insertNow(entry("m", created: now - 3600)) } == .unavailable)
        #expect(code { try file.insertNow(entry("m", created: now + 61, now: now + 61)) } == nil)
    }

    @Test func narrowedWindowStillCountsAfterPowerLoss() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.window = 600
        settings.bootIDPath = try boot("a", folder)
        do {
            let file = try ReplayFile(
                path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
            // Admitted, and lost with the machine's memory: signed by a clock that is eight minutes ahead.
            try file.setWindow(60, now: now)
        }
        settings.window = 60
        settings.bootIDPath = try boot("b", folder)
        let file = try ReplayFile(
            path: folder.path + "/replay", expecting: nil, settings: settings, now: now + 5)
        #expect(file.report.floor == now + 600)
        #expect(code { try file.insertNow(entry("n", created: now + 500, now: now + 480)) } == .unavailable)
        #expect(code { try file.insertNow(entry("n", created: now + 601, now: now + 600)) } == nil)
    }

    @Test func clockThatStartsBehindDoesNotOpenTheGate() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.window = 60
        settings.bootIDPath = try boot("a", folder)
        do {
            let file = try ReplayFile(
                path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
            try file.insertNow(entry("n"))
        }
        settings.bootIDPath = try boot("b", folder)
        let file = try ReplayFile(
            path: folder.path + "/replay", expecting: nil, settings: settings, now: now - 86_400)
        #expect(file.report.floor == now + 60)
    }

    @Test func missingOrForeignOrDamagedFilesCloseTheGate() throws {
        let folder = try Folder()
        let path = folder.path + "/replay"
        let stranger = try #require(ReplayFileID(String(repeating: "0a", count: 16)))
        var id: ReplayFileID?
        do {
            let file = try ReplayFile(path: path, expecting: stranger, now: now)
            #expect(file.report.condition == .missing)
            #expect(file.report.floor == now + 300)
            id = file.report.id
        }
        do {
            let file = try ReplayFile(path: path, expecting: id, now: now)
            #expect(file.report.condition == .intact)
            #expect(file.report.id == id)
            #expect(ReplayFileID(file.report.id.description) == id)
        }
        do {
            let file = try ReplayFile(path: path, expecting: stranger, now: now + 5)
            #expect(file.report.condition == .another)
            #expect(file.report.floor == now + 305)
        }
        for damage in [Damage.flip(3), .flip(20), .flip(60), .cut(to: 0), .cut(to: 100), .cut(to: 8192)] {
            try damage.apply(to: path)
            let file = try ReplayFile(path: path, expecting: id, now: now + 10)
            #expect(file.report.condition == .corrupt, "\(damage)")
            #expect(file.report.floor == now + 310)
            #expect(code { try file.insertNow(entry("n", created: now, now: now + 10)) } == .unavailable)
        }
    }

    @Test func oneProcessAtATime() throws {
        let folder = try Folder()
        let file = try open(folder)
        let fault = #expect(throws: OperationalError.self) { _ = try open(folder) }
        #expect(fault?.message.hasPrefix("\(folder.path)/replay is in use by process \(getpid()): ") == true)
        withExtendedLifetime(file) {}
    }

    @Test func growsAndNeverForgetsTheLiving() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.entries = 1024
        settings.mostEntries = 1 << 14
        let file = try ReplayFile(path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
        var admitted = 0
        var refused = 0
        for number in 0..<20_000 {
            switch code({ try file.insertNow(entry("n\(number)")) }) {
            case nil: admitted += 1
            case .unavailable: refused += 1
            case let other: Issue.record("\(other?.rawValue ?? "")")
            }
        }
        #expect(admitted > 1024, "it did not grow")
        #expect(refused > 0, "it never was full")
        let again = (0..<20_000).filter { number in code { try file.insertNow(entry("n\(number)")) } == nil }
        #expect(again.isEmpty, "admitted twice, or after it was refused for want of room")
    }

    @Test func growthIsKept() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.entries = 1024
        do {
            let file = try ReplayFile(
                path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
            for number in 0..<3000 { try file.insertNow(entry("n\(number)")) }
        }
        let file = try ReplayFile(path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
        #expect(file.report.condition == .intact)
        #expect(
            (0..<3000).allSatisfy { number in code { try file.insertNow(entry("n\(number)")) } == .replayed })
    }

    @Test func deadEntriesMakeRoomAndRaiseTheFloor() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.entries = 1024
        settings.mostEntries = 1024
        settings.window = 60
        let file = try ReplayFile(path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
        var count = 0
        while code({ try file.insertNow(entry("n\(count)")) }) == nil { count += 1 }
        #expect(count > 100)
        // Later, all of them are dead, and there is room again.
        let later = now + 200
        for number in 0..<count / 2 {
            #expect(code { try file.insertNow(entry("later \(number)", created: later, now: later)) } == nil)
        }
        // If the clock is set back, the dropped entries are missing, so requests are refused.
        var closed = 0
        for number in 0..<count {
            let again = code { try file.insertNow(entry("n\(number)")) }
            #expect(again == .replayed || again == .unavailable)
            if again == .unavailable { closed += 1 }
        }
        #expect(closed > 0, "nothing had been dropped")
    }

    @Test func olderThanItRemembersIsRefused() throws {
        let folder = try Folder()
        let file = try open(folder)
        #expect(code { try file.insertNow(entry("n", created: now - 360)) } == nil)
        #expect(code { try file.insertNow(entry("o", created: now - 361)) } == .unavailable)
        try file.setWindow(400, now: now)
        #expect(code { try file.insertNow(entry("m", created: now - 361)) } == nil)
    }

    @Test(
        "times that the file cannot write", arguments: [0, -1, Int64(UInt32.max) + 1, Int64.max, Int64.min])
    func outOfRange(_ created: Int64) throws {
        let folder = try Folder()
        let file = try open(folder)
        #expect(code { try file.insertNow(entry("n", created: created)) } == .stale)
    }

    @Test func tornRecordIsDead() throws {
        let folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.bootIDPath = try boot("a", folder)
        let path = folder.path + "/replay"
        do {
            let file = try ReplayFile(path: path, expecting: nil, settings: settings, now: now)
            try file.insertNow(entry("torn"))
            try file.insertNow(entry("whole"))
        }
        // As after a kill between the two words of the first record: the caller got no response.
        try Damage.tear.apply(to: path)
        let file = try ReplayFile(path: path, expecting: nil, settings: settings, now: now)
        #expect(file.report.condition == .intact)
        let codes = [code { try file.insertNow(entry("torn")) }, code { try file.insertNow(entry("whole")) }]
        #expect(codes.count { $0 == nil } == 1)
        #expect(codes.count { $0 == .replayed } == 1)
        #expect(code { try file.insertNow(entry("torn")) } == .replayed)
    }

    @Test(.enabled(if: Tmpfs.isPossible, "needs root, to mount a small tmpfs"))
    func fullDiskIsARefusal() throws {
        let folder = try Folder()
        let disk = try Tmpfs(on: folder.path + "/disk", size: "160k")
        var settings = ReplayFile.Settings()
        settings.entries = 4096
        let file = try ReplayFile(path: disk.path + "/replay", expecting: nil, settings: settings, now: now)
        var admitted: [Int] = []
        var reasons: Set<String> = []
        for number in 0..<6000 {
            let refusal = refusal { try file.insertNow(entry("n\(number)")) }
            if let refusal { reasons.insert(refusal.detail) } else { admitted.append(number) }
        }
        #expect(reasons.contains { $0.contains("No space left") }, "the disk never was full: \(reasons)")
        #expect(
            admitted.allSatisfy { number in code { try file.insertNow(entry("n\(number)")) } == .replayed })
        let fault = #expect(throws: OperationalError.self) {
            settings.entries = 1 << 16
            _ = try ReplayFile(path: disk.path + "/second", expecting: nil, settings: settings, now: now)
        }
        #expect(fault?.message.contains("No space left") == true)
    }

    private func open(_ folder: Folder) throws -> ReplayFile {
        try ReplayFile(path: folder.path + "/replay", expecting: nil, now: now)
    }

    private func boot(_ letter: String, _ folder: Folder) throws -> String {
        try folder.write(String(repeating: letter, count: 36) + "\n", to: "boot")
        return folder.path + "/boot"
    }

    private func entry(
        _ nonce: String, key: String = "r_key", scheme: SchemeName = .messageSignatures,
        created: Int64? = nil,
        now: Int64? = nil
    ) throws -> ReplayEntry {
        let bytes = Array(nonce.utf8)
        let replayKey = Claim.ReplayKey(bytes.span)
        return ReplayEntry(
            keyID: try #require(KeyID(key)), scheme: scheme, replayKey: try #require(replayKey),
            created: created ?? self.now, now: now ?? self.now)
    }
}

/// Damages to files.
private enum Damage {
    case flip(Int)
    case cut(to: Int)
    /// Takes the second word from the first record there is.
    case tear

    func apply(to path: String) throws {
        let file = open(path, O_RDWR)
        try #require(file >= 0)
        defer { close(file) }
        switch self {
        case .flip(let offset):
            var byte: UInt8 = 0
            #expect(pread(file, &byte, 1, off_t(offset)) == 1)
            byte ^= 1
            #expect(pwrite(file, &byte, 1, off_t(offset)) == 1)
        case .cut(let size): #expect(ftruncate(file, off_t(size)) == 0)
        case .tear:
            var record: (UInt64, UInt64) = (0, 0)
            var offset = off_t(4096)
            while pread(file, &record, 16, offset) == 16, record.1 == 0 { offset += 16 }
            try #require(record.1 != 0, "no record found")
            record.1 = 0
            #expect(pwrite(file, &record, 16, offset) == 16)
        }
    }
}

/// One byte from a child process.
private struct Pipe {
    private var ends: (Int32, Int32) = (-1, -1)

    init() throws {
        let made = withUnsafeMutableBytes(of: &ends) { pipe($0.bindMemory(to: Int32.self).baseAddress) }
        try #require(made == 0)
    }

    /// Closes every other descriptor of this process except the standard ones.
    func closeAllOthers() {
        for descriptor in 3..<Int32(4096) where descriptor != ends.0 && descriptor != ends.1 {
            close(descriptor)
        }
    }

    func send(_ byte: UInt8) { _ = withUnsafeBytes(of: byte) { write(ends.1, $0.baseAddress, 1) } }

    func receive() -> UInt8? {
        var byte: UInt8 = 0
        close(ends.1)
        return read(ends.0, &byte, 1) == 1 ? byte : nil
    }
}

/// A disk that is soon full, unmounted with its last holder.
private final class Tmpfs {
    let path: String

    init(on path: String, size: String) throws {
        self.path = path
        try #require(mkdir(path, 0o700) == 0)
        try #require(mount("tmpfs", path, "tmpfs", 0, "size=\(size)") == 0)
    }

    deinit {
        umount(path)
        rmdir(path)
    }

    static let isPossible: Bool = {
        guard geteuid() == 0, let folder = try? Folder(),
            let disk = try? Tmpfs(on: folder.path + "/disk", size: "16k")
        else {
            return false
        }
        return !disk.path.isEmpty
    }()
}
