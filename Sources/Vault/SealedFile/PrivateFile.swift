#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A small file that its owner alone may read: mode 0600, replaced whole, durable once written. What is
/// secret in it is sealed.
struct PrivateFile: Sendable {
    /// More than a vault ever holds.
    private static let most = 16 << 20

    let path: String

    func read() -> VaultReadResult<[UInt8]> {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        if file < 0, errno == ENOENT { return .absent }
        guard file >= 0 else { return .failed(failure("cannot open")) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return .failed("\(path): not a file")
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            return .failed("\(path): mode 0\(mode) lets others at it; expected 0600 (chmod 600)")
        }
        guard (0...PrivateFile.most).contains(Int(status.st_size)) else {
            return .failed("\(path): over \(PrivateFile.most) bytes; not written by this program")
        }
        return contents(of: file, count: Int(status.st_size))
    }

    private func contents(of file: Int32, count: Int) -> VaultReadResult<[UInt8]> {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let here = bytes.withUnsafeMutableBytes {
                pread(file, $0.baseAddress.map { $0 + done }, count - done, off_t(done))
            }
            if here < 0, errno == EINTR { continue }
            guard here >= 0 else { return .failed(failure("cannot read")) }
            guard here > 0 else { return .failed("\(path): shorter than it was a moment ago") }
            done += here
        }
        return .value(bytes)
    }

    /// A draft beside it takes its name once it is on the disk: a reader, and a machine that loses power, see
    /// the old contents or the new. The draft has one name, so that what a killed writer left is overwritten
    /// and does not gather: for callers that hold the vault's lock.
    func replace(_ contents: [UInt8]) throws(VaultError) {
        let draft = "\(path).draft"
        unlink(draft)
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw .failed(failure("cannot write a draft beside it")) }
        let isKept = PrivateFile.writeAll(contents, to: file) && fsync(file) == 0
        let code = errno
        close(file)
        guard isKept else {
            unlink(draft)
            errno = code
            throw .failed(failure("cannot write"))
        }
        guard rename(draft, path) == 0 else { throw .failed(failure("cannot put the draft in its place")) }
        try syncFolder()
    }

    private static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
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
    private func syncFolder() throws(VaultError) {
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let folder = open(parent.isEmpty ? "/" : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw .failed(failure("cannot open its folder")) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw .failed(failure("its name cannot be made durable")) }
    }

    private func failure(_ what: String) -> String { "\(path): \(what): \(String(cString: strerror(errno)))" }
}

/// A folder that its owner alone may enter.
enum PrivateFolder {
    /// Makes it, with mode 0700, and what is missing above it; one that is there stays as it is.
    static func make(_ path: String) throws(VaultError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw .failed("\(path): cannot be made: \(String(cString: strerror(errno)))")
        }
        try make(String(path[..<slash]))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw .failed("\(path): cannot be made: \(String(cString: strerror(errno)))")
        }
    }
}
