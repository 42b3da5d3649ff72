import CountersignGate
import CountersignWire
import Glibc

/// The latest changes that the processes of one data folder have committed, sealed, in the order of the
/// commits. Two files of a bounded size: a full one takes the place of the earlier one.
package struct StoreChangeFile: Sendable {
    /// Of each file. A change of one session takes about 200 bytes.
    private static let mostBytes: off_t = 32 << 20
    private static let mostRecordBytes = 1 << 26

    private let path: String
    private var earlier: String { "\(path).earlier" }

    package init(in folder: DataFolder) { path = folder.recentChanges }

    /// Adds a change, without waiting for the disk. One that cannot be written is a gap, which
    /// ``LostChanges`` detects.
    func append(_ change: StoreChange, under rows: RowAuthenticator) {
        let number = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { return }
        let file = FileDescriptor(owning: number)
        guard flock(file.number, LOCK_EX) == 0 else { return }
        defer { flock(file.number, LOCK_UN) }
        var (own, current) = (stat(), stat())
        guard fstat(file.number, &own) == 0 else { return }
        if own.st_size == 0 { KeyFile.giveToFolderOwner(file.number, path: path) }
        let sealed = rows.seal(change)
        let record = (0..<4).reversed().map { UInt8(truncatingIfNeeded: sealed.count >> (8 * $0)) } + sealed
        // What was cut off would hide what follows it.
        if write(file.number, record, record.count) != record.count { ftruncate(file.number, own.st_size) }
        let isCurrent = stat(path, &current) == 0 && current.st_ino == own.st_ino
        if isCurrent, own.st_size + off_t(record.count) >= StoreChangeFile.mostBytes { rename(path, earlier) }
    }

    /// The changes that this deployment has sealed. Ends at one that does not open.
    package func changes(under rows: RowAuthenticator) -> [StoreChange] {
        [earlier, path].flatMap { StoreChangeFile.changes(inFileAt: $0, under: rows) }
    }

    private static func changes(inFileAt path: String, under rows: RowAuthenticator) -> [StoreChange] {
        let number = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard number >= 0 else { return [] }
        let file = FileDescriptor(owning: number)
        var offset: off_t = 0
        func next(_ count: Int) -> [UInt8]? {
            guard count <= mostRecordBytes else { return nil }
            var bytes = [UInt8](repeating: 0, count: count)
            guard pread(file.number, &bytes, count, offset) == count else { return nil }
            offset += off_t(count)
            return bytes
        }
        var found: [StoreChange] = []
        while let length = next(4)?.reduce(0, { $0 << 8 | Int($1) }), let sealed = next(length),
            let change = rows.openChange(sealed)
        {
            found.append(change)
        }
        return found
    }
}
