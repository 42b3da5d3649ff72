import CountersignSeal
import CountersignWire
import Glibc

/// A small file of mode 0600 that holds one secret.
package enum KeyFile {
    private static let mostBytes = 4096

    /// Its bytes without white space at the end; nil where there is no such file. Refused where others may read it:
    /// then it is no secret any more, and to go on would hide that.
    package static func read(_ path: String) throws(Fault) -> Secret? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        if file < 0, errno == ENOENT { return nil }
        guard file >= 0 else { throw SystemFault(errno, "\(path): cannot open").fault(.unreachable) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Fault(.unreachable, "\(path): not a file")
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw Fault(.failed, "\(path): mode 0\(mode) lets others read this secret; expected 0600 (chmod 600)")
        }
        var bytes = [UInt8](repeating: 0, count: mostBytes)
        defer { bytes.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } } }
        var count = 0
        while count < mostBytes {
            let here = bytes.withUnsafeMutableBytes {
                Glibc.read(file, $0.baseAddress.map { $0 + count }, mostBytes - count)
            }
            if here < 0, errno == EINTR { continue }
            guard here >= 0 else { throw SystemFault(errno, "\(path): cannot read").fault(.unreachable) }
            if here == 0 { break }
            count += here
        }
        while count > 0, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[count - 1]) { count -= 1 }
        return Secret(copying: bytes.span.extracting(0..<count))
    }

    /// Makes the file, whole and durable or not at all. Where one is there already it stays, which is no fault: two
    /// processes may start at once, and both then read the winner's.
    package static func make(_ path: String, _ secret: Secret) throws(Fault) {
        let draft = KeyFile.draftName(for: path)
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemFault(errno, "\(draft): cannot make").fault(.unreachable) }
        defer { unlink(draft) }
        let written = secret.withExposedBytes { bytes in
            bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
        let code = errno
        let synced = fsync(file)
        close(file)
        guard written == secret.count, synced == 0 else {
            throw SystemFault(written < 0 ? code : ENOSPC, "\(path): cannot write").fault(.unreachable)
        }
        guard link(draft, path) == 0 || errno == EEXIST else {
            throw SystemFault(errno, "\(path): cannot make").fault(.unreachable)
        }
        syncFolder(of: path)
    }

    /// A name of its own for a file that is not whole yet. Random, not a process id: in a container each start has the
    /// same one, and a draft that a crash left would be in the way for ever.
    package static func draftName(for path: String) -> String {
        "\(path).\(Hex.encode(SystemRandom().bytes(8).span))"
    }

    private static func syncFolder(of path: String) {
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }
}
