#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Keeps the last manifest in a file, replaced as a whole. The manifest is signed, so the file needs no secrecy; whoever can
/// delete it can bring back the built-in set, as whoever can reinstall the app can.
public struct ManifestFile: ManifestStore {
    private let path: String

    /// The folder must be there.
    public init(_ path: String) { self.path = path }

    /// All of the file; nil where there is none.
    public func read() throws(ManifestProblem) -> [UInt8]? {
        guard access(path, F_OK) == 0 else {
            guard errno == ENOENT else { throw problem("cannot be looked for") }
            return nil
        }
        guard let bytes = FileBytes.contents(of: path, upTo: SignedManifest.longest) else {
            throw problem("cannot be read")
        }
        return bytes
    }

    /// Written beside it, synced, renamed, and the folder synced.
    public func write(_ bytes: [UInt8]) throws(ManifestProblem) {
        let draft = path + ".new"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw problem("cannot be written") }
        let written = FileBytes.put(bytes, in: descriptor)
        let synced = fsync(descriptor)
        close(descriptor)
        guard written == bytes.count, synced == 0, rename(draft, path) == 0, syncFolder() else {
            throw problem("cannot be written")
        }
    }

    private func syncFolder() -> Bool {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }

    private func problem(_ what: String) -> ManifestProblem {
        .store("\(path): \(what): \(String(cString: strerror(errno)))")
    }
}
