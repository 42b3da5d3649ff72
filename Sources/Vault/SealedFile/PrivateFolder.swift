#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A folder that its owner alone may enter.
enum PrivateFolder {
    /// Makes it, with mode 0700, and what is missing above it; one that is there stays as it is.
    static func make(_ path: String) throws(VaultProblem) {
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
