import CountersignLab
import Glibc

/// A port's driver as a process: one JSON text a line on its standard input, one answer a line on its
/// standard output. Its standard error goes to a file. It has a process group of its own, which is ended with
/// it.
final class PortProcess {
    private let id: pid_t
    private let stream: Int32
    private let errors: String
    private var buffer: [UInt8] = []
    private var hasEnded = false

    /// Bytes of a line, at most.
    private static let longestLine = 1 << 20

    /// Starts `words[0]`, looked up in `PATH`, with the rest as arguments.
    init(_ words: [String], errors: String) throws(LabError) {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else {
            throw LabError("no pipe: error \(errno)")
        }
        signal(SIGPIPE, SIG_IGN)
        self.errors = errors
        stream = ends[0]
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        ChildProcess.closeFilesOnExec()
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, standard) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigemptyset(&standard)
        sigaddset(&standard, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &standard)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
        let arguments = words.map { strdup($0) }
        defer { for pointer in arguments { free(pointer) } }
        var id = pid_t()
        let status = posix_spawnp(&id, words.first ?? "", &actions, &attributes, arguments + [nil], environ)
        close(ends[1])
        self.id = id
        guard status == 0 else {
            close(stream)
            hasEnded = true
            throw LabError("\(words.first ?? ""): cannot be started: \(String(cString: strerror(status)))")
        }
        // The whole group, as kill(2) has it.
        InterruptCleanup.willRun(-id)
    }

    deinit { end() }

    /// Ends it and what it has started, without a chance to do anything more.
    func end() {
        guard !hasEnded else { return }
        hasEnded = true
        kill(-id, SIGKILL)
        var status: Int32 = 0
        waitpid(id, &status, 0)
        InterruptCleanup.didEnd(-id)
        close(stream)
    }

    /// Writes a line and reads one; nil where none comes in `seconds`, or the process ends.
    func exchange(_ line: String, within seconds: Int64) -> String? {
        let bytes = Array((line + "\n").utf8)
        guard !hasEnded, write(stream, bytes, bytes.count) == bytes.count else { return nil }
        let deadline = PortProcess.milliseconds() + seconds * 1_000
        while buffer.count < PortProcess.longestLine {
            if let end = buffer.firstIndex(of: 0x0A) {
                defer { buffer.removeFirst(end + 1) }
                return String(decoding: buffer[..<end], as: UTF8.self)
            }
            let rest = deadline - PortProcess.milliseconds()
            var waiting = pollfd(fd: stream, events: Int16(POLLIN), revents: 0)
            guard rest > 0, poll(&waiting, 1, Int32(clamping: rest)) > 0 else { return nil }
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = read(stream, &piece, piece.count)
            guard count > 0 else { return nil }
            buffer += piece[..<count]
        }
        return nil
    }

    /// The end of what it wrote to standard error.
    var errorOutput: String {
        let bytes = (try? Files.read(errors)) ?? []
        return String(decoding: bytes.suffix(600), as: UTF8.self)
    }

    private static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
