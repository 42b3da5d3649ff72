import Glibc

/// The lab's file operations.
package enum Files {
    /// The whole file, 64 MB at most.
    package static func read(_ path: String) throws(LabError) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw LabError("\(path): cannot be read: error \(errno)") }
        defer { close(file) }
        var (bytes, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while bytes.count < 64 << 20 {
            let count = Glibc.read(file, &piece, piece.count)
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return bytes
    }

    /// Writes the file, replacing its contents. Accessible to its owner only.
    package static func write(_ bytes: [UInt8], to path: String) throws(LabError) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw LabError("\(path): cannot be written: error \(errno)") }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw LabError("\(path): cannot be written: error \(errno)")
        }
    }

    /// Creates a folder accessible to its owner only; it may exist.
    package static func makeFolder(_ path: String) throws(LabError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw LabError("\(path): cannot be made: error \(errno)")
        }
    }

    /// Creates a temporary folder accessible to its owner only.
    package static func makeTemporaryFolder(_ name: String) throws(LabError) -> String {
        let place = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(place)/\(name)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw LabError("\(place): no folder can be made there: error \(errno)")
        }
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        InterruptCleanup.willFill(path)
        return path
    }

    /// Removes a file, which may be missing.
    package static func remove(_ path: String) { unlink(path) }

    /// The names in a folder except sockets, which cannot be read or copied.
    package static func names(in folder: String) throws(LabError) -> [String] {
        try entries(of: folder).filter { !$0.isSocket }.map(\.name).sorted()
    }

    private static func entries(of folder: String) throws(LabError) -> [(name: String, isSocket: Bool)] {
        guard let stream = opendir(folder) else {
            throw LabError("\(folder): cannot be read: error \(errno)")
        }
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

    /// The paths of all files below a folder.
    package static func all(below folder: String) throws(LabError) -> [String] {
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

    /// Removes a folder and its contents. Never follows a link.
    package static func removeFolder(_ folder: String) {
        for (name, _) in (try? entries(of: folder)) ?? [] {
            let path = "\(folder)/\(name)"
            var state = stat()
            guard lstat(path, &state) == 0 else { continue }
            if state.st_mode & S_IFMT == S_IFDIR { removeFolder(path) } else { unlink(path) }
        }
        rmdir(folder)
        InterruptCleanup.didRemove(folder)
    }
}

/// Ports for servers that are restarted. They are below 32768, the start of the range for outgoing
/// connections (`ip_local_port_range`), so that no outgoing connection takes a server's port while it is
/// down.
package enum Ports {
    /// A port on 127.0.0.1 that is free at this moment.
    package static func free() throws(LabError) -> UInt16 {
        for _ in 0..<200 {
            let port = UInt16.random(in: 12_000..<32_000)
            if isFree(port) { return port }
        }
        throw LabError("no port of 127.0.0.1 is free between 12000 and 32000")
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard file >= 0 else { return false }
        defer { close(file) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
