import CountersignSchemes
import CountersignWire
import Glibc
import Synchronization
import TestRounds
import Testing

@testable import CountersignGate

/// The replay table grows in steps: no lock is held longer than for one bucket, no entry is lost even if a
/// process ends in the middle, and requests continue while a large table doubles.
@Suite struct ReplayGrowthTests {
    private let now: Int64 = 1_800_000_000

    @Test func everyFingerprintIsFoundAtEachNumberOfRows() {
        var state: UInt64 = 1
        var wrong = 0
        for _ in 0..<rounds(500) {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let place = state ^ state >> 29
            var row = ReplayTable.row(of: place, among: 1)
            for rows in 1..<300 {
                // The split that makes row `rows` moves an entry there or leaves it, and touches no other
                // bucket.
                let next = ReplayTable.row(of: place, among: rows + 1)
                if next != row, next != rows || row != ReplayTable.source(of: rows) { wrong += 1 }
                row = next
            }
        }
        #expect(wrong == 0)
    }

    @Test func aBucketIsSplitAtTheNumberOfRowsThatIsAskedFor() {
        var wrong = 0
        for rows in 1..<200 {
            for row in 0..<rows {
                let needed = ReplayTable.rowsAfterSplit(of: row, among: rows)
                if needed <= rows || ReplayTable.source(of: needed - 1) != row { wrong += 1 }
                for other in rows..<max(rows, needed - 1) where ReplayTable.source(of: other) == row {
                    wrong += 1
                }
            }
        }
        #expect(wrong == 0)
    }

    @Test func whoIsAloneGrowsTheTableAheadOfNeed() async throws {
        let folder = try Folder()
        let file = try open(folder, entries: 1024, most: 1 << 18)
        let count = rounds(50_000)
        for number in 0..<count { try await file.insert(entry(number)) }
        let capacity = file.usage(now: now).capacity
        #expect(capacity > count && capacity < count * 16)
        var found = 0
        for number in 0..<count where await isReplayed(number, in: file) { found += 1 }
        #expect(found == count)
    }

    @Test func nothingIsAdmittedTwiceWhileItGrows() async throws {
        let folder = try Folder()
        let file = try open(folder, entries: 1024, most: 1 << 18)
        let half = rounds(20_000)
        let admitted = await withTaskGroup(of: Int.self, returning: Int.self) { group in
            // Each entry is tried by two tasks at once, in different orders.
            for task in 0..<4 {
                group.addTask {
                    var count = 0
                    for step in 0..<half {
                        let number = (task % 2 == 0 ? step : half - 1 - step) + task / 2 * half
                        if (try? await file.insert(entry(number))) != nil { count += 1 }
                    }
                    return count
                }
            }
            return await group.reduce(0, +)
        }
        #expect(admitted == 2 * half)
        #expect(file.usage(now: now).capacity > 2 * half)
    }

    /// The file as `kill -9` leaves it at each point of a split, before and after the number of rows is
    /// written.
    @Test(arguments: [true, false]) func aSplitThatWasCutOffLosesNothing(_ isCounted: Bool) throws {
        let folder = try Folder()
        let settings = try settings(folder, entries: 1 << 14, most: 1 << 18)
        let path = folder.path + "/replay"
        do {
            let file = try ReplayFile(path: path, expecting: nil, settings: settings, now: now)
            for number in 0..<6_000 { try file.insertNow(entry(number)) }
            let table = file.table
            try table.file.extend(to: ReplayTable.fileBytes(rows: table.mostRows + 1))
            for shard in 0..<ShardLocks.count {
                // The file's own growth may be under way.
                file.locks.withLock(of: shard, repair: table.removeMoved) {
                    let rows = table.header.rows(of: shard)
                    let old = table.bucket(row: ReplayTable.source(of: rows), shard: shard)
                    let kept = (0..<ReplayTable.ways * 2).map { old[$0] }
                    table.split(shard)
                    for index in kept.indices { old[index] = kept[index] }
                    if !isCounted { table.header.setRows(of: shard, to: rows) }
                }
            }
        }
        let file = try ReplayFile(path: path, expecting: nil, settings: settings, now: now)
        #expect(file.report.condition == .intact)
        #expect((0..<6_000).allSatisfy { number in code { try file.insertNow(entry(number)) } == .replayed })
        for number in 6_000..<20_000 { try file.insertNow(entry(number)) }
        #expect((0..<20_000).allSatisfy { number in code { try file.insertNow(entry(number)) } == .replayed })
    }

    @Test func killedWhileItGrowsLosesNothing() throws {
        let folder = try Folder()
        let settings = try settings(folder, entries: 1024, most: 1 << 20)
        let path = folder.path + "/replay"
        var inserted = 0
        for round in 0..<4 {
            let counter = try SharedCounter()
            let most = inserted + rounds(20_000) + round * rounds(3_010)
            // The child writes a byte when it has inserted so many, and continues.
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            let child = fork()
            if child == 0 {
                for descriptor in 3..<Int32(4096) where descriptor != ends[1] { close(descriptor) }
                guard let file = try? ReplayFile(path: path, expecting: nil, settings: settings, now: now)
                else {
                    _exit(1)
                }
                for number in inserted..<Int.max {
                    guard let entry = try? entry(number), (try? file.insertNow(entry)) != nil else {
                        _exit(2)
                    }
                    counter.value = number + 1
                    if number + 1 == most { _ = write(ends[1], "x", 1) }
                }
            }
            close(ends[1])
            defer { close(ends[0]) }
            var byte: UInt8 = 0
            #expect(read(ends[0], &byte, 1) == 1, "the child ended by itself")
            kill(child, SIGKILL)
            var status: Int32 = 0
            waitpid(child, &status, 0)
            #expect(status & 0x7F == SIGKILL, "the child was not killed")
            let file = try ReplayFile(path: path, expecting: nil, settings: settings, now: now)
            #expect(file.report.condition == .intact)
            let seen = counter.value
            let lost = (inserted..<seen).filter { number in
                code { try file.insertNow(entry(number)) } != .replayed
            }
            #expect(lost.isEmpty, "\(lost.first ?? 0) of \(seen)")
            // The entry that was being inserted may be present or not.
            inserted = seen + 1
        }
    }

    /// Two that share the file, as two processes do: locks in one memory, and a mapping for each.
    @Test func twoWhoShareItAdmitEachEntryOnce() async throws {
        let folder = try Folder()
        let settings = try settings(folder, entries: 1024, most: 1 << 18)
        let path = folder.path + "/replay"
        let first = try ReplayFile(path: path, expecting: nil, settings: settings, now: now)
        let second = try ReplayFile(
            path: path, expecting: nil, settings: settings, handover: first.handover, now: now)
        let all = rounds(40_000)
        let admitted = await withTaskGroup(of: Int.self, returning: Int.self) { group in
            for file in [first, second] {
                group.addTask {
                    var count = 0
                    for number in 0..<all where (try? await file.insert(entry(number))) != nil {
                        count += 1
                    }
                    return count
                }
            }
            return await group.reduce(0, +)
        }
        #expect(admitted == all)
    }

    @Test func aLockWhoseOwnerDiedIsTakenOver() throws {
        let locks = ShardLocks(makingIn: SharedMemory("test", bytes: ShardLocks.bytes))
        let child = fork()
        if child == 0 { locks.withLock(of: 5, repair: { _ in }) { _exit(0) } }
        var status: Int32 = 0
        waitpid(child, &status, 0)
        var repaired: [Int] = []
        #expect(locks.withLock(of: 5, repair: { repaired.append($0) }) { 42 } == 42)
        #expect(locks.withLock(of: 5, repair: { repaired.append($0) }) { 43 } == 43)
        #expect(repaired == [5])
    }

    private func open(_ folder: Folder, entries: Int, most: Int) throws -> ReplayFile {
        try ReplayFile(
            path: folder.path + "/replay", expecting: nil,
            settings: settings(folder, entries: entries, most: most),
            now: now)
    }

    private func settings(_ folder: Folder, entries: Int, most: Int) throws -> ReplayFile.Settings {
        var settings = ReplayFile.Settings()
        settings.entries = entries
        settings.mostEntries = most
        try folder.write(String(repeating: "a", count: 36) + "\n", to: "boot")
        settings.bootIDPath = folder.path + "/boot"
        return settings
    }

    private func entry(_ number: Int) throws -> ReplayEntry {
        let nonce = Array("n\(number)".utf8)
        let replayKey = Claim.ReplayKey(nonce.span)
        return ReplayEntry(
            keyID: try #require(KeyID("r_key")), scheme: .messageSignatures,
            replayKey: try #require(replayKey),
            created: now, now: now)
    }

    private func isReplayed(_ number: Int, in file: ReplayFile) async -> Bool {
        do {
            try await file.insert(entry(number))
            return false
        } catch {
            return (error as? Refusal)?.code == .replayed
        }
    }
}

/// A number that a child process writes and its parent reads.
private final class SharedCounter {
    private let page: UnsafeMutableRawPointer

    init() throws {
        page = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
        try #require(page != MAP_FAILED)
    }

    deinit { munmap(page, 4096) }

    var value: Int {
        get { page.assumingMemoryBound(to: Atomic<Int>.self).pointee.load(ordering: .acquiring) }
        set { page.assumingMemoryBound(to: Atomic<Int>.self).pointee.store(newValue, ordering: .releasing) }
    }
}
