import CountersignSeal
import CountersignTrust
import CountersignVault

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A vault in memory that goes wrong when a test says so: is locked, fails, is written by somebody else, or is slow.
///
/// A test of a fault asserts that the fault was met: that ``pending`` is 0.
public final class FaultyVault: Sendable {
    /// One call of the vault's to what keeps its items. A change that expects something reads first.
    public enum Call: Sendable, Hashable, CaseIterable {
        /// Of one item.
        case read
        /// Of one item, new or not.
        case write
        /// Of one item, there or not.
        case remove
        /// Of all items' names.
        case list
    }

    /// What happens at a call.
    public enum Fault: Sendable, Hashable {
        /// It answers that it is locked, and does nothing.
        case locked
        /// It fails, and does nothing.
        case failed
        /// It does what it is to, and then fails, as a machine that loses its power in between.
        case failedAfterwards
        /// It does what it is to; then somebody else writes the item anew, with the same contents.
        case writtenByAnother
        /// It does what it is to; then somebody else removes the item.
        case removedByAnother
        /// It keeps its thread waiting that long, of real time, and then does what it is to.
        case slow(milliseconds: UInt32)
    }

    /// The vault. Any number may be opened on one store: they see the same items, as two processes do.
    public let vault: Vault
    private let store: FaultyStore

    /// With nothing in it.
    public init() throws {
        let folder = try TemporaryFolder()
        store = FaultyStore(folder)
        vault = Vault(store, locks: VaultLocks(folder: folder.path))
    }

    /// One fault, at the `number`th such call from now on; the next one is 1. Several may wait for the same call.
    public func plan(_ fault: Fault, at call: Call, number: Int = 1) { store.plan(fault, call, number) }

    /// A fault at each call until it is ended; none ends it.
    public func always(_ fault: Fault?) { store.always(fault) }

    /// How many planned faults have not happened.
    public var pending: Int { store.pending }

    /// Every call so far, in order.
    public var calls: [Call] { store.calls }
}

/// A folder that goes with the value.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/countersign-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestFailure(description: "no temporary folder below \(parent)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for file in ["writing.lock", "lease.lock"] { unlink("\(path)/\(file)") }
        rmdir(path)
    }
}
