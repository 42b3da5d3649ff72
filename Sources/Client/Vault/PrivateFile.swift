import CountersignSeal
import CountersignWire
import Glibc

/// A small file that its owner alone may read: mode 0600, replaced whole, durable once written.
struct PrivateFile: Sendable {
    /// More than a vault ever holds.
    private static let most = 1 << 20

    let path: String

    func read() -> VaultReading {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        if file < 0, errno == ENOENT { return .absent }
        guard file >= 0 else { return .unreadable(problem("cannot open")) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return .unreadable(VaultProblem("\(path): not a file"))
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            return .unreadable(VaultProblem("\(path): mode 0\(mode) lets others read it; expected 0600 (chmod 600)"))
        }
        guard (0...PrivateFile.most).contains(Int(status.st_size)) else {
            return .unreadable(VaultProblem("\(path): over \(PrivateFile.most) bytes; not written by this program"))
        }
        return contents(of: file, count: Int(status.st_size))
    }

    private func contents(of file: Int32, count: Int) -> VaultReading {
        var bytes = [UInt8](repeating: 0, count: count)
        defer { bytes.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } } }
        var done = 0
        while done < count {
            let here = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress.map { $0 + done }, count - done) }
            if here < 0, errno == EINTR { continue }
            guard here >= 0 else { return .unreadable(problem("cannot read")) }
            guard here > 0 else { return .unreadable(VaultProblem("\(path): shorter than it was a moment ago")) }
            done += here
        }
        return .value(Secret(copying: bytes.span))
    }

    /// A draft beside it takes its name once it is on the disk: a reader, and a machine that loses power, see the old
    /// contents or the new.
    func replace(_ contents: Secret) throws(VaultProblem) {
        try publish(contents) { draft in rename(draft, path) == 0 }
    }

    /// The same where there is none yet; whoever was first stays.
    func make(_ contents: Secret) throws(VaultProblem) {
        try publish(contents) { draft in link(draft, path) == 0 || errno == EEXIST }
    }

    func remove() throws(VaultProblem) {
        guard unlink(path) == 0 || errno == ENOENT else { throw problem("cannot remove") }
        syncFolder()
    }

    private func publish(_ contents: Secret, _ place: (String) -> Bool) throws(VaultProblem) {
        let draft = "\(path).\(Hex.encode(SystemRandom().bytes(8).span))"
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw problem("cannot write a draft beside it") }
        defer { unlink(draft) }
        let isWritten = contents.withExposedBytes { PrivateFile.writeAll($0, to: file) }
        let isKept = isWritten && fsync(file) == 0
        let code = errno
        close(file)
        guard isKept else {
            errno = code
            throw problem("cannot write")
        }
        guard place(draft) else { throw problem("cannot put in its place") }
        syncFolder()
    }

    private static func writeAll(_ bytes: Span<UInt8>, to file: Int32) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = write(file, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }

    /// Without this a power loss may take back the name although the bytes are kept.
    private func syncFolder() {
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let folder = open(parent.isEmpty ? "/" : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }

    private func problem(_ what: String) -> VaultProblem {
        VaultProblem("\(path): \(what): \(String(cString: strerror(errno)))")
    }
}
