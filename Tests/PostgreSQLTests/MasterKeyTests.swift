import CountersignAuthority
import CountersignWire
import DatabaseFixture
import Foundation
import Testing

@testable import CountersignSQL

/// The master key is not replaced before every live node says that it has the next one.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
final class MasterKeyTests {
    private let folder: String
    private let deployment: Deployment
    private let channel: any NodeChannel

    init() throws {
        let address = try #require(TestDatabases.shared).make()
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)")
            .path
        deployment = try Deployment(
            folder: DataFolder(folder, absence: .create),
            store: StorePlace.postgreSQL(address).open(acknowledging: .followed), environment: [:])
        channel = try #require(StorePlace.postgreSQL(address).openChannel())
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// A live node that follows everything.
    private func enter(_ name: String, with key: NodeMasterKey?, lease: Int64 = 60_000) throws {
        let node = Node(
            id: name, name: "node \(name)", replayGuard: "one", lease: lease, applied: .max / 2,
            masterKey: key)
        _ = try channel.renew(node)
    }

    private func rotate() throws -> MasterKeyRotation.Outcome {
        try MasterKeyRotation(of: deployment, announcement: 300).run()
    }

    private func isRefused(naming names: [String], _ text: String) throws {
        let before = try deployment.store.value(of: .sealSlot)
        let fault = #expect(throws: OperationalError.self) { try rotate() }
        let message = fault?.message ?? ""
        #expect(message.contains(text) && message.contains("nothing was changed"), "\(message)")
        for name in ["a", "b", "c"] {
            #expect(message.contains("node \(name)") == names.contains(name), "\(message)")
        }
        #expect(try deployment.store.value(of: .sealSlot) == before)
        #expect(try deployment.store.value(of: .masterKeyNextCheck) == nil)
    }

    @Test func waitsForAllNodes() throws {
        try enter("a", with: deployment.nodeMasterKey())
        try enter("b", with: nil)
        try enter("c", with: NodeMasterKey(isInFolder: true))
        // The first run makes the key.
        try isRefused(naming: ["a", "b", "c"], "do not have the next master key")
        let own = deployment.nodeMasterKey()
        #expect(own.isInFolder && own.next != nil)
        try enter("a", with: own)
        try enter("b", with: NodeMasterKey(isInFolder: true, next: "00ff"))
        try isRefused(naming: ["b", "c"], "do not have the next master key")
        try enter("b", with: own)
        try isRefused(naming: ["c"], "do not have the next master key")
        // One that has lapsed is not asked.
        try enter("c", with: nil, lease: 1)
        let outcome = try rotate()
        #expect(outcome.current == own.next && outcome.left == 0 && outcome.keyToMove == nil)
        #expect(deployment.nodeMasterKey() == NodeMasterKey(isInFolder: true))
    }

    @Test func isNotReplacedElsewhere() throws {
        try enter("a", with: deployment.nodeMasterKey())
        try enter("b", with: NodeMasterKey(isInFolder: false))
        try isRefused(naming: ["b"], "from the environment or a credential")
    }

    @Test(
        "what a node says of its key is read as it was written",
        arguments: [
            ("folder", NodeMasterKey(isInFolder: true)), ("elsewhere", NodeMasterKey(isInFolder: false)),
            ("folder 00ff", NodeMasterKey(isInFolder: true, next: "00ff")), ("", nil), ("file", nil),
            ("folder 00 ff", nil),
        ])
    func texts(_ row: (text: String, key: NodeMasterKey?)) {
        #expect(NodeMasterKey(text: row.text) == row.key)
        if let key = row.key { #expect(key.text == row.text) }
    }

    /// A node renames its own file once the store has the key, and not before.
    @Test func aNodeFinishesInItsFolder() throws {
        let (path, next) = (deployment.folder.masterKey, deployment.folder.nextMasterKey)
        let files = FileManager.default
        let former = files.contents(atPath: path)
        try enter("a", with: nil)
        #expect(throws: OperationalError.self) { try rotate() }
        try MasterKeyRotation(of: deployment).finishAtNode()
        #expect(files.contents(atPath: path) == former && files.fileExists(atPath: next))
        try enter("a", with: deployment.nodeMasterKey())
        _ = try rotate()
        let current = files.contents(atPath: path)
        #expect(current != former && !files.fileExists(atPath: next))
        // As it is in the folder of another node.
        let mode: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        try files.removeItem(atPath: path)
        #expect(files.createFile(atPath: path, contents: former, attributes: mode))
        #expect(files.createFile(atPath: next, contents: current, attributes: mode))
        try MasterKeyRotation(of: deployment).finishAtNode()
        #expect(files.contents(atPath: path) == current && !files.fileExists(atPath: next))
    }
}
