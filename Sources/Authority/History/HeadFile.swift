import CountersignGate
import CountersignWire
import Glibc

/// The file of the data folder that keeps a sealed head. It has two slots, which are written in turn, so that
/// a write that is interrupted leaves the one before. Processes on one folder take turns by a lock.
struct HeadFile {
    /// Of each: a length of 2 bytes, and the sealed head.
    private static let slotBytes = 2_048
    private static let slots = 2

    private let path: String
    private let file: FileDescriptor
    /// What each slot had when it was read last, so that only what is new is opened.
    private var seen = [(sealed: [UInt8], head: StoreHead?)](repeating: ([], nil), count: slots)

    init(_ path: String) throws(OperationalError) {
        self.path = path
        let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        file = FileDescriptor(owning: number)
        KeyFile.giveToFolderOwner(number, path: path)
    }

    /// Returns the newest of the heads that this deployment has sealed, or nil if the file has no such head.
    mutating func newest(under rows: RowAuthenticator) -> StoreHead? {
        var newest: StoreHead?
        for slot in 0..<HeadFile.slots {
            guard let head = head(in: slot, under: rows) else { continue }
            if newest?.advance(to: head) == nil { newest = head }
        }
        return newest
    }

    /// Keeps what another process has written meanwhile, too. The older slot is replaced.
    mutating func keep(_ followed: StoreHead, under rows: RowAuthenticator) {
        guard flock(file.number, LOCK_EX) == 0 else { return }
        defer { flock(file.number, LOCK_UN) }
        var heads: [StoreHead?] = []
        for slot in 0..<HeadFile.slots { heads.append(head(in: slot, under: rows)) }
        var kept = followed
        for head in heads { if let head { kept.advance(to: head) } }
        guard !heads.contains(kept) else { return }
        let lags = heads.map { $0?.missing(comparedWith: kept) ?? .max }
        write(rows.seal(kept), to: lags[0] < lags[1] ? 1 : 0)
    }

    private mutating func head(in slot: Int, under rows: RowAuthenticator) -> StoreHead? {
        var bytes = [UInt8](repeating: 0, count: HeadFile.slotBytes)
        let count = pread(file.number, &bytes, bytes.count, off_t(slot * bytes.count))
        guard count >= 2 else { return nil }
        let length = Int(bytes[0]) << 8 | Int(bytes[1])
        guard length <= count - 2 else { return nil }
        let sealed = Array(bytes[2..<2 + length])
        if sealed != seen[slot].sealed { seen[slot] = (sealed, rows.openHead(sealed)) }
        return seen[slot].head
    }

    private func write(_ sealed: [UInt8], to slot: Int) {
        guard sealed.count <= HeadFile.slotBytes - 2 else { return }
        let bytes = [UInt8(sealed.count >> 8), UInt8(sealed.count & 0xFF)] + sealed
        _ = pwrite(file.number, bytes, bytes.count, off_t(slot * HeadFile.slotBytes))
    }
}
