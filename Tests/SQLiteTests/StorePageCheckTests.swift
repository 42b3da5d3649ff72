import CountersignAuthority
import CountersignWire
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

/// A check beside reads finds what the check at opening finds, and says the same. Until its verdict is there,
/// nothing is written: neither to the file nor, when it is closed, from its log.
@Suite struct StorePageCheckTests {
    static let damages: [Data] = [Data(repeating: 0xA5, count: 64), Data(repeating: 0, count: 4_096)]

    private func fault(_ body: () throws -> Void) -> OperationalError? {
        do {
            try body()
            return nil
        } catch { return error as? OperationalError }
    }

    private func fill(_ store: SQLStore) throws {
        try TaggedStore.fill(store)
        for number in 0..<200 {
            let app = App(name: try #require(AppName("app-\(number)")), created: 1)
            _ = try store.insert(app, recording: .counting)
        }
    }

    /// As a server does it: what was read counts only if the check has passed.
    private func read(_ store: SQLStore, beside check: StorePageCheck) throws {
        do {
            _ = try store.apps()
            _ = try store.outlines(changedAfter: 0, limit: 1_000)
        } catch {
            try check.requireSound()
            throw error
        }
        try check.requireSound()
    }

    @Test("damage of any page has the message of a check at opening", arguments: damages)
    func damage(_ bytes: Data) throws {
        try TaggedStore.make { path, store in
            try fill(store)
            store.close()
            let good = try #require(FileManager.default.contents(atPath: path))
            for page in 1..<good.count / 4_096 {
                var bad = good
                bad.replaceSubrange(page * 4_096..<page * 4_096 + bytes.count, with: bytes)
                #expect(FileManager.default.createFile(atPath: path, contents: bad))
                let expected = fault { _ = try SQLStore(path: path).apps() }
                let check = StorePageCheck()
                let opened = SQLStore(
                    path: path, inspecting: .concurrent(check), rows: TaggedStore.makeRows())
                let found = fault { try read(opened, beside: check) }
                #expect(found?.message == expected?.message, "page \(page)")
                #expect(found?.kind == expected?.kind, "page \(page)")
                #expect(found != nil, "page \(page)")
                // No other page than the damaged one is needed for this change.
                let app = App(name: try #require(AppName("late")), created: 1)
                let refused = fault { _ = try opened.insert(app, recording: .counting) }
                #expect(refused != nil, "page \(page)")
                #expect(fault { _ = try opened.isEmpty() } != nil, "page \(page)")
                opened.close()
                #expect(FileManager.default.contents(atPath: path) == bad, "page \(page)")
            }
        }
    }

    @Test("a damaged file and the log of an unclean end stay as they are")
    func uncleanEnd() throws {
        try TaggedStore.make { path, store in
            try fill(store)
            store.close()
            let app = App(name: try #require(AppName("late")), created: 1)
            _ = try store.insert(app, recording: .counting)
            var bad = try #require(FileManager.default.contents(atPath: path))
            let log = try #require(FileManager.default.contents(atPath: "\(path)-wal"))
            #expect(!log.isEmpty)
            store.close()
            let page = try #require(bad.firstRange(of: Data("ada".utf8))).lowerBound / 4_096
            bad.replaceSubrange(page * 4_096..<page * 4_096 + 64, with: Data(repeating: 0xA5, count: 64))
            for isWaiting in [true, false] {
                #expect(FileManager.default.createFile(atPath: path, contents: bad))
                #expect(FileManager.default.createFile(atPath: "\(path)-wal", contents: log))
                do {
                    let check = StorePageCheck()
                    let opened = SQLStore(path: path, inspecting: .concurrent(check))
                    #expect(try opened.revision() > 0)
                    try opened.prepare()
                    if isWaiting { #expect(throws: OperationalError.self) { try check.requireSound() } }
                    opened.close()
                }
                #expect(FileManager.default.contents(atPath: path) == bad)
                #expect(FileManager.default.contents(atPath: "\(path)-wal") == log)
                for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            }
        }
    }

    @Test("a sound file is used as before, and its log is gone at the end")
    func sound() throws {
        try TaggedStore.make { path, store in
            try fill(store)
            store.close()
            let check = StorePageCheck()
            let opened = SQLStore(path: path, inspecting: .concurrent(check), rows: TaggedStore.makeRows())
            try opened.prepare()
            // The check reads while another process changes the file.
            let other = SQLStore(path: path, inspecting: .header, rows: TaggedStore.makeRows())
            let change = { (store: any Store) throws(OperationalError) -> Void in
                _ = try store.setIfAbsent(.meterBegan, to: [1])
                try check.requireSound()
            }
            let faults = try other.applyTogether([change])
            #expect(faults.allSatisfy { $0 == nil })
            try read(opened, beside: check)
            #expect(check.hasPassed)
            _ = try opened.setIfAbsent(.writeCheck, to: [1])
            other.close()
            opened.close()
            #expect(!FileManager.default.fileExists(atPath: "\(path)-wal"))
            // Opened once more, the file is not checked once more.
            #expect(try opened.value(of: .writeCheck) == [1])
        }
    }

    @Test("a file that opening changes is checked before")
    func migrated() throws {
        try TaggedStore.make { path, _ in
            let check = StorePageCheck()
            let store = SQLStore(path: path, inspecting: .concurrent(check))
            #expect(try store.apps().isEmpty)
            try check.requireSound()
            #expect(!check.hasPassed, "there is no file yet")
            try store.prepare()
            #expect(check.hasPassed, "the file had no layout")
            #expect(try store.revision() == 0)
        }
    }

    @Test("a check that no component waits for ends before its owner is gone")
    func abandoned() throws {
        try TaggedStore.make { path, store in
            try fill(store)
            store.close()
            for _ in 0..<50 {
                let opened = SQLStore(path: path, inspecting: .concurrent(StorePageCheck()))
                #expect(try opened.revision() > 0)
            }
            try FileManager.default.removeItem(atPath: path)
        }
    }
}
