import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

/// Keyed requests move between the store and the log: at a start, after a restart from the other place, and
/// after a move that was cut off. No key is lost.
@Suite struct KeyedRequestStorageTests {
    private final class Place {
        let deployment: Deployment
        let writer: DirectWriter
        private let folder: String

        init() throws {
            folder =
                FileManager.default.temporaryDirectory
                .appendingPathComponent("countersign-\(UUID().uuidString)").path
            let data = try DataFolder(folder, absence: .create)
            let store = StorePlace.sqlite(path: data.database).open()
            deployment = try Deployment(
                folder: data, store: store,
                environment: ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)])
            writer = DirectWriter(store: store)
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        func storage(
            _ wanted: IdempotencySettings.Storage, after predecessor: IdempotencySettings.Storage? = nil,
            handOver: HandoverState = HandoverState()
        ) throws -> KeyedRequestStorage {
            try KeyedRequestStorage(
                wanted, of: deployment, writer: writer, predecessor: predecessor, handOver: handOver,
                readiness: Readiness(), note: { _ in })
        }

        var rows: Int {
            get throws { try deployment.store.heldRequests(after: 0, limit: 10_000).requests.count }
        }

        var hasLog: Bool { get throws { try RequestLog.exists(in: deployment.folder) } }
    }

    private static func request(_ number: Int) -> IdempotentRequest {
        IdempotentRequest(
            scope: .account(Int64(number % 5)), key: [UInt8](repeating: UInt8(number % 250), count: 32),
            digest: [UInt8(number % 7)], begun: Int64(1_000 + number))
    }

    private static let answer = StoredAnswer(status: 201, fields: [], body: [1, 2, 3])

    /// Begins 200 and gives every third an answer.
    private static func fill(_ store: any IdempotencyStore) async throws {
        for number in 0..<200 {
            #expect(try await store.begin(request(number), within: .init()) == .begun)
            if number.isMultiple(of: 3) { try await store.finish(request(number), with: answer) }
        }
    }

    private static func expectAll(_ store: any IdempotencyStore) async throws {
        for number in 0..<200 {
            let state = try await store.begin(request(number), within: .init())
            #expect(state == (number.isMultiple(of: 3) ? .finished(answer) : .unfinished), "\(number)")
        }
    }

    @Test func aStartMovesWhatTheOtherPlaceHas() async throws {
        let place = try Place()
        let rows = try place.storage(.store)
        try await Self.fill(rows.store)
        rows.stop()
        #expect(try place.rows == 200 && !place.hasLog)
        for _ in 0..<2 {
            let log = try place.storage(.log)
            try await Self.expectAll(log.store)
            log.stop()
            #expect(try place.rows == 0 && place.hasLog)
        }
        let back = try place.storage(.store)
        try await Self.expectAll(back.store)
        #expect(try place.rows == 200 && !place.hasLog)
    }

    @Test("a move that was cut off is done again, from either side")
    func cutOff() async throws {
        let place = try Place()
        try await Self.fill(place.storage(.store).store)
        let held = try place.deployment.store.heldRequests(after: 0, limit: 1_000).requests
        let log = try RequestLog(in: place.deployment.folder, keys: place.deployment.requestKeys)
        try log.adopt(Array(held.prefix(70)))
        // And some rows were removed already.
        _ = try place.deployment.store.forgetRequests(before: 1_030, limit: 100)
        let moved = try place.storage(.log)
        try await Self.expectAll(moved.store)
        moved.stop()
        try place.deployment.store.adopt(Array(held.suffix(90)))
        let back = try place.storage(.store)
        try await Self.expectAll(back.store)
    }

    @Test("a server that takes over goes on with its predecessor's place until that has ended")
    func takingOver() async throws {
        let place = try Place()
        try await Self.fill(place.storage(.store).store)
        let handOver = HandoverState()
        handOver.begin()
        let storage = try place.storage(.log, after: .store, handOver: handOver)
        try storage.moveIfDue()
        #expect(try place.rows == 200 && !place.hasLog)
        #expect(try await storage.store.begin(Self.request(200), within: .init()) == .begun)
        // The predecessor finishes one.
        try place.deployment.store.finish(Self.request(3), with: Self.answer)
        try place.deployment.store.finish(Self.request(4), with: Self.answer)
        handOver.end()
        try storage.moveIfDue()
        #expect(try place.rows == 0 && place.hasLog)
        try await storage.store.finish(Self.request(200), with: Self.answer)
        for number in [4, 200] {
            #expect(
                try await storage.store.begin(Self.request(number), within: .init()) == .finished(Self.answer)
            )
        }
        #expect(try await storage.store.begin(Self.request(5), within: .init()) == .unfinished)
        storage.stop()
    }

    @Test("after a restart from a log to the store it is the same")
    func takingOverALog() async throws {
        let place = try Place()
        let former = try place.storage(.log)
        try await Self.fill(former.store)
        let handOver = HandoverState()
        handOver.begin()
        let storage = try place.storage(.store, after: .log, handOver: handOver)
        try storage.moveIfDue()
        #expect(try await storage.store.begin(Self.request(200), within: .init()) == .begun)
        #expect(try await former.store.begin(Self.request(200), within: .init()) == .unfinished)
        try await former.store.finish(Self.request(4), with: Self.answer)
        former.stop()
        handOver.end()
        try storage.moveIfDue()
        #expect(try place.rows == 201 && !place.hasLog)
        #expect(try await storage.store.begin(Self.request(4), within: .init()) == .finished(Self.answer))
        #expect(try await storage.store.begin(Self.request(200), within: .init()) == .unfinished)
    }

    @Test("while another process serves, nothing moves")
    func sharedAgain() async throws {
        let place = try Place()
        let handOver = HandoverState()
        handOver.hasHandedOver = true
        let storage = try place.storage(.log, after: .store, handOver: handOver)
        try storage.moveIfDue()
        #expect(try !place.hasLog)
        #expect(storage.offers(describedBy: FileDescriptor(owning: -1)).isEmpty)
        handOver.hasHandedOver = false
        try storage.moveIfDue()
        #expect(try place.hasLog)
        #expect(storage.offers(describedBy: FileDescriptor(owning: -1)).map(\.name) == ["request-log"])
        storage.stop()
    }
}
