import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

/// Over an SQLite file, keyed requests are in the log; over a database they are rows, and a log beside it that
/// has requests is not overlooked.
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

        func storage(over location: StoreLocation) throws -> KeyedRequestStorage {
            try KeyedRequestStorage(
                of: deployment, over: location, writer: writer, readiness: Readiness(), note: { _ in })
        }

        var hasLog: Bool { get throws { try RequestLog.exists(in: deployment.folder) } }
    }

    private static let file = StoreLocation.sqlite(path: "countersign.db")
    private static let request = IdempotentRequest(
        scope: .account(1), key: [UInt8](repeating: 7, count: 32), digest: [1], begun: 1_000)

    private static func database() throws -> StoreLocation {
        try #require(StoreLocation(text: "postgres://127.0.0.1/shop"))
    }

    @Test("over a file there is a log, of which a successor is told")
    func overAFile() async throws {
        let place = try Place()
        let storage = try place.storage(over: Self.file)
        #expect(try await storage.store.begin(Self.request, within: .init()) == .begun)
        #expect(try place.hasLog)
        #expect(storage.offers(describedBy: FileDescriptor(owning: -1)).map(\.name) == ["request-log"])
        storage.stop()
        let again = try place.storage(over: Self.file)
        #expect(try await again.store.begin(Self.request, within: .init()) == .unfinished)
        again.stop()
    }

    @Test("over a database there are rows")
    func overADatabase() async throws {
        let place = try Place()
        let storage = try place.storage(over: Self.database())
        #expect(try await storage.store.begin(Self.request, within: .init()) == .begun)
        #expect(try place.deployment.store.begin(Self.request, within: .init()) == .unfinished)
        #expect(try !place.hasLog && storage.offers(describedBy: FileDescriptor(owning: -1)).isEmpty)
        storage.stop()
    }

    @Test("a log with records beside a database is refused, an empty one is not")
    func logBesideADatabase() async throws {
        let place = try Place()
        let folder = place.deployment.folder
        try KeyedRequestStorage.requireNoLog(in: folder, over: Self.database())
        let storage = try place.storage(over: Self.file)
        try KeyedRequestStorage.requireNoLog(in: folder, over: Self.database())
        _ = try await storage.store.begin(Self.request, within: .init())
        storage.stop()
        try KeyedRequestStorage.requireNoLog(in: folder, over: Self.file)
        let error = #expect(throws: OperationalError.self) {
            try KeyedRequestStorage.requireNoLog(in: folder, over: Self.database())
        }
        let message = try #require(error?.message)
        #expect(message.hasPrefix("\(folder.path)/requests-0000000001.log: "))
        #expect(message.contains("`countersign migrate FROM postgres://127.0.0.1/shop"))
    }
}
