import Glibc

/// What the lab does with files.
package enum Files {
    /// The whole file, 64 MB at most.
    package static func read(_ path: String) throws(StageFault) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw StageFault("\(path): cannot be read: error \(errno)") }
        defer { close(file) }
        var (bytes, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while bytes.count < 64 << 20 {
            let count = Glibc.read(file, &piece, piece.count)
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return bytes
    }

    /// Makes the file, or takes the place of what stood in it. For its owner alone.
    package static func write(_ bytes: [UInt8], to path: String) throws(StageFault) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw StageFault("\(path): cannot be written: error \(errno)") }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw StageFault("\(path): cannot be written: error \(errno)")
        }
    }

    /// Makes a folder for its owner alone; it may be there.
    package static func makeFolder(_ path: String) throws(StageFault) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw StageFault("\(path): cannot be made: error \(errno)")
        }
    }

    /// A new folder among the machine's temporary ones, for its owner alone.
    package static func makeTemporaryFolder(_ name: String) throws(StageFault) -> String {
        let place = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(place)/\(name)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw StageFault("\(place): no folder can be made there: error \(errno)")
        }
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        Interruption.willFill(path)
        return path
    }

    /// Removes a file, which may be gone already.
    package static func remove(_ path: String) { unlink(path) }

    /// The names in a folder, but those of sockets, which have nothing to be read or copied.
    package static func names(in folder: String) throws(StageFault) -> [String] {
        try entries(of: folder).filter { !$0.isSocket }.map(\.name).sorted()
    }

    private static func entries(of folder: String) throws(StageFault) -> [(name: String, isSocket: Bool)] {
        guard let stream = opendir(folder) else { throw StageFault("\(folder): cannot be read: error \(errno)") }
        defer { closedir(stream) }
        var entries: [(name: String, isSocket: Bool)] = []
        while let entry = readdir(stream) {
            let isSocket = entry.pointee.d_type == UInt8(truncatingIfNeeded: DT_SOCK)
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { entries.append((name, isSocket)) }
        }
        return entries
    }

    /// Every file below a folder, by its path.
    package static func all(below folder: String) throws(StageFault) -> [String] {
        var found: [String] = []
        for name in try names(in: folder) {
            let path = "\(folder)/\(name)"
            var state = stat()
            guard lstat(path, &state) == 0 else { continue }
            switch state.st_mode & S_IFMT {
            case S_IFDIR: found += try all(below: path)
            case S_IFREG: found.append(path)
            default: break
            }
        }
        return found
    }

    /// Removes a folder and all below it. Never follows a link.
    package static func removeFolder(_ folder: String) {
        for (name, _) in (try? entries(of: folder)) ?? [] {
            let path = "\(folder)/\(name)"
            var state = stat()
            guard lstat(path, &state) == 0 else { continue }
            if state.st_mode & S_IFMT == S_IFDIR { removeFolder(path) } else { unlink(path) }
        }
        rmdir(folder)
        Interruption.didRemove(folder)
    }
}
