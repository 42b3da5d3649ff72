import CountersignSeal
import CountersignWire
import Glibc

/// The limits' tables in one file of mode 0600, replaced as a whole: what was counted outlives the process.
///
/// `length (4, big-endian) ‖ snapshot` for each ``LoginLimits/Kind``, in order. Each snapshot has a digest of its
/// own, so a torn write is found.
package struct LimitFile: Sendable {
    private let path: String

    package init(_ path: String) { self.path = path }

    package enum Found: Sendable {
        case none
        case limits(LoginLimits)
        /// There is something, and it is not whole, or of tables of another size.
        case damaged
    }

    /// The limits as they were when the file was written.
    package func read(_ rules: LoginLimits.Rules, at now: Int64) throws(Fault) -> Found {
        guard let bytes = try contents() else { return .none }
        guard let snapshots = LimitFile.split(bytes) else { return .damaged }
        do throws(LimitTable.NotRestored) {
            return .limits(try LoginLimits(rules, restoring: snapshots, at: now))
        } catch {
            return .damaged
        }
    }

    /// All of it or none: written beside, made durable, and put in its place.
    package func write(_ snapshots: [LoginLimits.Kind: [UInt8]]) throws(Fault) {
        var bytes: [UInt8] = []
        for kind in LoginLimits.Kind.allCases {
            let snapshot = snapshots[kind] ?? []
            bytes += (0..<4).map { UInt8(truncatingIfNeeded: snapshot.count >> (24 - 8 * $0)) } + snapshot
        }
        let draft = KeyFile.draftName(for: path)
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemFault(errno, "\(draft): cannot make").fault(.unreachable) }
        defer { unlink(draft) }
        var written = 0
        while written < bytes.count {
            let here = bytes.withUnsafeBytes {
                Glibc.write(file, $0.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if here < 0, errno == EINTR { continue }
            guard here > 0 else { break }
            written += here
        }
        let code = errno
        let synced = fsync(file)
        close(file)
        guard written == bytes.count, synced == 0 else {
            throw SystemFault(written < bytes.count ? code : errno, "\(path): cannot write").fault(.unreachable)
        }
        guard rename(draft, path) == 0 else { throw SystemFault(errno, "\(path): cannot replace").fault(.unreachable) }
    }

    private static func split(_ bytes: [UInt8]) -> [LoginLimits.Kind: [UInt8]]? {
        var snapshots: [LoginLimits.Kind: [UInt8]] = [:]
        var start = 0
        for kind in LoginLimits.Kind.allCases {
            guard bytes.count - start >= 4 else { return nil }
            let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            guard bytes.count - start - 4 >= length else { return nil }
            snapshots[kind] = Array(bytes[start + 4..<start + 4 + length])
            start += 4 + length
        }
        return start == bytes.count ? snapshots : nil
    }

    /// Nil where there is no such file.
    private func contents() throws(Fault) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        if file < 0, errno == ENOENT { return nil }
        guard file >= 0 else { throw SystemFault(errno, "\(path): cannot open").fault(.unreachable) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Fault(.unreachable, "\(path): not a file")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let here = bytes.withUnsafeMutableBytes {
                Glibc.read(file, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            if here < 0, errno == EINTR { continue }
            guard here >= 0 else { throw SystemFault(errno, "\(path): cannot read").fault(.unreachable) }
            if here == 0 { break }
            count += here
        }
        return Array(bytes.prefix(count))
    }
}
