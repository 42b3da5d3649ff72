import CountersignAuthority
import CountersignSQLite
import CountersignWire
import Foundation
import Testing

/// An implementation of the port `Store`, as the contract opens it.
struct StoreImplementation: Sendable, CustomTestStringConvertible {
    /// The name of its folder in `Sources/Stores`.
    let name: String
    /// Opens the store of that folder: at first an empty one, and later the same one again.
    let open: @Sendable (_ folder: String) -> any Store

    static let all = [
        StoreImplementation(name: "SQLite") { SQLiteStore(path: "\($0)/countersign.db") }
    ]

    var testDescription: String { name }
}

/// Every implementation fulfils the contract of the port, over one connection, over many and within a
/// transaction.
@Suite struct StoreContractTests {
    private static func withFolder(_ body: (_ folder: String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("countersign-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    @Test func everyImplementationIsListed() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folders = try FileManager.default.contentsOfDirectory(atPath: "\(root.path)/Sources/Stores")
        #expect(
            folders.sorted() == StoreImplementation.all.map(\.name).sorted(),
            "step 4 of \"Add a store\" in CONTRIBUTING.md: list it in StoreImplementation.all")
    }

    @Test(arguments: StoreImplementation.all)
    func contractAcrossOpenings(_ store: StoreImplementation) throws {
        try Self.withFolder { folder in
            let contract = StoreContract { store.open(folder) }
            try contract.holds()
            try contract.races()
        }
    }

    @Test(arguments: StoreImplementation.all)
    func contractOnOneConnection(_ implementation: StoreImplementation) throws {
        try Self.withFolder { folder in
            let store = implementation.open(folder)
            try StoreContract { store }.holds()
            try StoreContract { store }.races()
        }
    }

    @Test(
        "everything can be done within a transaction, and all of it undone",
        arguments: StoreImplementation.all)
    func contractWithinATransaction(_ implementation: StoreImplementation) throws {
        try Self.withFolder { folder in
            let store = implementation.open(folder)
            try store.prepare()
            func change(_ store: any Store) throws(OperationalError) {
                do {
                    try StoreContract { store }.holds()
                } catch {
                    Issue.record(error)
                }
                guard try store.revision() > 0 else {
                    throw OperationalError(.usage, message: "nothing was done")
                }
                throw OperationalError(.failed, message: "undone")
            }
            let changes: [(any Store) throws(OperationalError) -> Void] = [change]
            let faults = try store.applyTogether(changes)
            #expect(faults == [OperationalError(.failed, message: "undone")])
            #expect(try store.revision() == 0 && store.apps().isEmpty && store.sessionChange() == 0)
        }
    }

    @Test(arguments: StoreImplementation.all)
    func whatIsDoneOnceIsRememberedUpToSoManyKeys(_ store: StoreImplementation) throws {
        try Self.withFolder { folder in try StoreContract { store.open(folder) }.boundsOfKeys() }
    }

    @Test(arguments: StoreImplementation.all)
    func whatIsDoneOnceIsRememberedUpToSoManyBytes(_ store: StoreImplementation) throws {
        try Self.withFolder { folder in try StoreContract { store.open(folder) }.boundsOfBytes() }
    }
}
