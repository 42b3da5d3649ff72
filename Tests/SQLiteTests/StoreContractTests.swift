import CountersignAuthority
import CountersignSQL
import CountersignWire
import Foundation
import StoreContract
import Testing

/// SQLite fulfils the contract of the port, over one connection, over many and within a transaction.
@Suite struct StoreContractTests {
    private static let store = StoreImplementation { StorePlace.sqlite(path: "\($0)/countersign.db").open() }

    private static func withFolder(_ body: (_ folder: String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("countersign-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    @Test("every driver has a target that runs the contract on it")
    func everyImplementationIsTested() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path
        let drivers = try FileManager.default.contentsOfDirectory(atPath: "\(root)/Sources/Stores/SQL")
            .filter { !$0.hasSuffix(".swift") && $0 != "Tables" }
        #expect(drivers.count >= 2)
        for driver in drivers {
            #expect(
                FileManager.default.fileExists(
                    atPath: "\(root)/Tests/\(driver)Tests/StoreContractTests.swift"),
                "step 4 of \"Add a store\" in CONTRIBUTING.md: run the contract on \(driver)")
        }
    }

    @Test func contractAcrossOpenings() throws { try Self.withFolder(Self.store.holdsAcrossOpenings) }
    @Test func contractOnOneStore() throws { try Self.withFolder(Self.store.holdsOnOneStore) }
    @Test func contractWithinATransaction() throws { try Self.withFolder(Self.store.holdsWithinATransaction) }

    @Test(arguments: StoreImplementation.Bound.allCases)
    func keyedRequestsAreBounded(_ bound: StoreImplementation.Bound) throws {
        try Self.withFolder { try Self.store.boundsKeyedRequests($0, by: bound) }
    }
}
