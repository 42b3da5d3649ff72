import CountersignAuthority
import CountersignWire
import Glibc

/// Has a running server start its successor, and waits until that serves.
package struct Restart {
    /// Tenths of a second for the successor to load everything.
    private static let patience = 6_000
    private let folder: DataFolder

    package init(_ folder: DataFolder) { self.folder = folder }

    /// The successor's process id.
    package func run() throws(Fault) -> Int {
        guard let answer = try ask("restart") else {
            throw Fault(.unreachable, "no server runs on \(folder.path); `countersign serve` starts one")
        }
        guard answer.hasPrefix("started "), let successor = pid_t(answer.dropFirst(8)) else {
            throw Fault(.failed, answer.hasPrefix("failed ") ? String(answer.dropFirst(7)) : answer)
        }
        for _ in 0..<Restart.patience {
            // During the hand-over neither process answers here.
            if let answer = try? ask("who"), answer == "serving \(successor)" { return Int(successor) }
            guard kill(successor, 0) == 0 else {
                throw Fault(.failed, "the new process ended before it served; the old one goes on. Its log says why")
            }
            usleep(100_000)
        }
        throw Fault(.failed, "process \(successor) does not serve yet")
    }

    /// Has a running server look at the store now; nothing where none runs.
    package func wake() { _ = try? ask("look") }

    private func ask(_ question: String) throws(Fault) -> String? {
        guard let connection = try ControlConnection(to: folder) else { return nil }
        try connection.send(question)
        return try connection.expect(within: 2_000).message
    }
}
