import CountersignGate
import CountersignWire
import Glibc

/// The program that this process runs, and how it runs once more as the successor of this server.
enum ServerProgram {
    static let takeOver = "--takeover"

    /// As of the first use, which is at the start: a new version may lie under that name later.
    static let path: String? = {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = bytes.withUnsafeMutableBytes { room in
            room.baseAddress.map { readlink("/proc/self/exe", $0, room.count) } ?? -1
        }
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }()

    /// Starts it with this process's arguments, environment and standard streams; answers its process id.
    static func startSuccessor() throws(Fault) -> pid_t {
        guard let path else { throw Fault(.failed, "cannot tell which program this is") }
        var arguments = CommandLine.arguments
        if !arguments.contains(takeOver) { arguments.append(takeOver) }
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, path, nil, nil, pointers, environ)
        guard code == 0 else { throw Fault.system(path, code: code) }
        return child
    }
}
