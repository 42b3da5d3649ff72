import CountersignMemory
import CountersignSQL
import CountersignWire
import Foundation
import Synchronization
import Testing
import Waiting

@testable import CountersignAuthority

@Suite struct GroupWriterTests {
    private let folder = TemporaryFolder()
    private let store: FailingStore
    /// Another connection to the same file, which sees only committed changes.
    private let other: any Store

    init() throws {
        let path = "\(folder.path)/countersign.db"
        other = StorePlace.sqlite(path: path).open()
        try other.prepare()
        store = FailingStore(StorePlace.sqlite(path: path).open())
    }

    private func name(_ number: Int) throws -> AppName { try #require(AppName("app-\(number)")) }

    private static func add(_ name: AppName, to writer: GroupWriter) async throws -> Int {
        try await writer.write { (store) throws(OperationalError) in
            _ = try store.insert(App(name: name, created: 1), recording: .empty)
            return name.description.utf8.count
        }
    }

    @Test("what a write answers is there for everybody when it returns")
    func durable() async throws {
        let writer = try GroupWriter(store)
        for number in 8..<12 {
            let name = try name(number)
            #expect(try await GroupWriterTests.add(name, to: writer) == name.description.utf8.count)
            #expect(try other.app(name) != nil)
        }
        writer.stop()
    }

    @Test("resumes on the executor that the caller came from")
    @MainActor func executor() async throws {
        let writer = try GroupWriter(store)
        let thread = try await writer.write { _ in UInt(pthread_self()) }
        MainActor.preconditionIsolated()
        #expect(thread != UInt(pthread_self()))
        writer.stop()
    }

    @Test("changes that gather while one is written share the next transaction")
    func groups() async throws {
        let writer = try GroupWriter(store, bounds: GroupWriter.Bounds(waiting: 200, together: 60))
        store.gate.close()
        let names = try (0..<101).map(name)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await GroupWriterTests.add(names[0], to: writer) }
            await store.gate.waitUntilReached()
            for name in names[1...] { group.addTask { _ = try await GroupWriterTests.add(name, to: writer) } }
            await until("100 in line") { writer.waiting == 100 }
            #expect(try other.apps().isEmpty)
            store.gate.open()
            try await group.waitForAll()
        }
        #expect(store.gate.groups == [1, 60, 40])
        #expect(try other.apps().count == 101)
        #expect(try other.revision() == 101)
        writer.stop()
    }

    @Test("a change that fails takes nothing else with it")
    func oneFails() async throws {
        let writer = try GroupWriter(store)
        store.gate.close()
        let names = try (0..<4).map(name)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await GroupWriterTests.add(names[0], to: writer) }
            await store.gate.waitUntilReached()
            group.addTask { _ = try await GroupWriterTests.add(names[1], to: writer) }
            await until("1 in line") { writer.waiting == 1 }
            group.addTask {
                let refusal = await #expect(throws: Refusal.self) {
                    try await writer.write { (store) throws(OperationalError) in
                        _ = try store.insert(App(name: names[2], created: 1), recording: .empty)
                        throw OperationalError(.failed, message: "no room for it")
                    }
                }
                #expect(refusal == Refusal(.unavailable, detail: "no room for it", retryAfter: 1))
            }
            await until("2 in line") { writer.waiting == 2 }
            group.addTask { _ = try await GroupWriterTests.add(names[3], to: writer) }
            await until("3 in line") { writer.waiting == 3 }
            store.gate.open()
            try await group.waitForAll()
        }
        #expect(store.gate.groups == [1, 3], "the failing one was not in the others' transaction")
        #expect(try other.apps().map(\.name) == [names[0], names[1], names[3]])
        writer.stop()
    }

    @Test("a store that fails refuses everybody, says so once, and is used again when it can be")
    func allFail() async throws {
        let notes = Notes()
        let writer = try GroupWriter(store) { notes.add($0) }
        let names = try (0..<6).map(name)
        _ = try await GroupWriterTests.add(names[0], to: writer)
        store.fails = true
        for name in names[1...3] {
            let refusal = await #expect(throws: Refusal.self) {
                try await GroupWriterTests.add(name, to: writer)
            }
            #expect(refusal?.code == .unavailable && refusal?.retryAfter == 1)
        }
        store.fails = false
        for name in names[4...] { _ = try await GroupWriterTests.add(name, to: writer) }
        #expect(try other.apps().map(\.name) == [names[0], names[4], names[5]])
        writer.stop()
        #expect(
            notes.all == ["the store takes no changes: the disk is gone", "the store takes changes again"])
    }

    @Test(
        "a full line and a stopped writer refuse at once; who leaves is not written; what waits at the end is"
    )
    func bounds() async throws {
        let writer = try GroupWriter(store, bounds: GroupWriter.Bounds(waiting: 3))
        store.gate.close()
        let names = try (0..<6).map(name)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await GroupWriterTests.add(names[0], to: writer) }
            await store.gate.waitUntilReached()
            group.addTask { _ = try await GroupWriterTests.add(names[1], to: writer) }
            await until("1 in line") { writer.waiting == 1 }
            let leaver = Task { try await GroupWriterTests.add(names[2], to: writer) }
            await until("2 in line") { writer.waiting == 2 }
            writer.writeLater { (store) throws(OperationalError) in
                _ = try store.insert(App(name: names[3], created: 1), recording: .empty)
            }
            await until("3 in line") { writer.waiting == 3 }
            let full = await #expect(throws: Refusal.self) {
                try await GroupWriterTests.add(names[4], to: writer)
            }
            #expect(full?.code == .unavailable && full?.retryAfter == 1)
            leaver.cancel()
            let left = await #expect(throws: Refusal.self) { try await leaver.value }
            #expect(left?.code == .unavailable)
            await until("2 in line") { writer.waiting == 2 }

            let stopping = Task.detached { writer.stop() }
            // Takes the free place in the queue, until the queue is closed.
            await until("the queue is closed") {
                let isRefused = Locked(false)
                let trial = Task {
                    defer { isRefused.with { $0 = true } }
                    _ = try await GroupWriterTests.add(names[5], to: writer)
                }
                await until("queued or refused") { writer.waiting == 3 || isRefused.with { $0 } }
                defer { trial.cancel() }
                return isRefused.with { $0 }
            }
            store.gate.open()
            await stopping.value
            try await group.waitForAll()
        }
        let written = try Set(other.apps().map(\.name))
        #expect(written.isSuperset(of: [names[0], names[1], names[3]]))
        #expect(written.isDisjoint(with: [names[2], names[4]]))
        let late = await #expect(throws: Refusal.self) {
            try await GroupWriterTests.add(names[4], to: writer)
        }
        #expect(late?.code == .unavailable)
    }
}

/// The notes to operators, in order.
private final class Notes: Sendable {
    private let notes = Locked<[String]>([])

    func add(_ note: String) { notes.with { $0.append(note) } }
    var all: [String] { notes.with { $0 } }
}

extension AuditDraft {
    /// Its head counts in two bytes.
    fileprivate static let empty = AuditDraft { head in
        let number = (head ?? [0, 0]).reduce(0) { $0 << 8 | Int64($1) } + 1
        return (
            AuditRow(number: number, record: [UInt8(ascii: "r")], tag: [0]),
            [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
        )
    }
}
