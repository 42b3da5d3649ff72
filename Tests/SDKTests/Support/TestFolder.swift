import CountersignSeal
import CountersignWire
import Glibc

/// An empty folder, gone with the value.
final class TestFolder: Sendable {
    let path: String

    struct Problem: Error {}

    init() throws {
        path = "/tmp/countersign-sdk-\(Hex.encode(SystemRandom().bytes(8).span))"
        guard mkdir(path, 0o700) == 0 else { throw Problem() }
    }

    deinit {
        for name in names { unlink("\(path)/\(name)") }
        rmdir(path)
    }
}

extension TestFolder {
    /// A file in it becomes something else.
    func spoil(_ name: String) throws {
        guard let file = fopen("\(path)/\(name)", "r+") else { throw Problem() }
        fputs("spoilt", file)
        fclose(file)
    }
}

extension TestFolder {
    var names: [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names
    }

    /// A short file's text; nil where it is not there.
    func contents(_ name: String) -> String? {
        guard let file = fopen("\(path)/\(name)", "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

extension TestFolder {
    /// Where it is.
    func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        guard let file = fopen("\(path)/\(name)", "w") else { throw Problem() }
        defer { fclose(file) }
        guard fwrite(bytes, 1, bytes.count, file) == bytes.count else { throw Problem() }
        return "\(path)/\(name)"
    }
}
