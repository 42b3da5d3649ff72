import CountersignAuthority
import CountersignGate
import CountersignWire
import Glibc

/// Makes a running server start its successor, and waits until the successor serves.
package struct RestartRequest {
    /// Tenths of a second that the successor has to load everything.
    private static let patience = 6_000
    private let folder: DataFolder

    package init(_ folder: DataFolder) { self.folder = folder }

    /// The successor's process id.
    package func run() throws(OperationalError) -> Int {
        guard let answer = try ask("restart") else {
            throw OperationalError(
                .unreachable, message: "no server runs on \(folder.path); `countersign serve` starts one")
        }
        guard answer.hasPrefix("started "), let successor = pid_t(answer.dropFirst(8)) else {
            throw OperationalError(
                .failed, message: answer.hasPrefix("failed ") ? String(answer.dropFirst(7)) : answer)
        }
        for _ in 0..<RestartRequest.patience {
            // During the hand-over neither process answers here.
            if let answer = try? ask("who"), answer == "serving \(successor)" { return Int(successor) }
            guard kill(successor, 0) == 0 else {
                throw OperationalError(
                    .failed,
                    message: "the new process ended before it served; the old one goes on. Its log says why")
            }
            usleep(100_000)
        }
        throw OperationalError(.failed, message: "process \(successor) does not serve yet")
    }

    /// Makes a running server look at the store now; does nothing if none runs.
    package func wake() { _ = try? ask("look") }

    private func ask(_ question: String) throws(OperationalError) -> String? {
        guard let connection = try ControlConnection(to: folder) else { return nil }
        try connection.send(question)
        return try connection.expect(within: 2_000).message
    }
}

/// The program that this process runs, and how to run it again as the successor of this server.
package enum ServerProgram {
    static let takeOver = "--takeover"

    /// Evaluated at the first use, which is at the start: a new version may replace the file under that name
    /// later.
    static let path: String? = {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = bytes.withUnsafeMutableBytes { room in
            room.baseAddress.map { readlink("/proc/self/exe", $0, room.count) } ?? -1
        }
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }()

    /// The path of another program in the same folder.
    package static func beside(_ name: String) -> String? {
        guard let path, let slash = path.lastIndex(of: "/") else { return nil }
        return path[...slash] + name
    }

    /// Starts the program with this process's arguments, environment and standard streams; returns its
    /// process id.
    static func startSuccessor() throws(OperationalError) -> pid_t {
        guard let path else { throw OperationalError(.failed, message: "cannot tell which program this is") }
        var arguments = CommandLine.arguments
        if !arguments.contains(takeOver) { arguments.append(takeOver) }
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, path, nil, nil, pointers, environ)
        guard code == 0 else { throw OperationalError.system(path, code: code) }
        return child
    }
}
