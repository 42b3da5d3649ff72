import CountersignMemory
import Dispatch
import Glibc

/// A child process of the lab. Its standard output is read line by line, its standard error goes to a file.
package final class ChildProcess: Sendable {
    package let id: pid_t
    private let output: Int32

    /// Starts `words[0]`, a path, with the rest as arguments. `input` is its standard input, at most a pipe's
    /// 60 kB; `environment` is its whole environment; `path` is the file for its standard error.
    package init(
        _ words: [String], input: [UInt8] = [], environment: [String: String], errors path: String
    ) throws(LabError) {
        let ends = try ChildProcess.pipe()
        let typed = try ChildProcess.pipe()
        defer { close(typed.reading) }
        guard input.count <= 61_440, input.isEmpty || write(typed.writing, input, input.count) == input.count
        else {
            throw LabError("input of \(input.count) bytes does not fit into a pipe")
        }
        close(typed.writing)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, typed.reading, 0)
        posix_spawn_file_actions_adddup2(&actions, ends.writing, 1)
        posix_spawn_file_actions_addopen(&actions, 2, path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        var id = pid_t()
        let status = ChildProcess.spawn(&id, arguments: words, environment: environment, actions: &actions)
        close(ends.writing)
        output = ends.reading
        self.id = id
        if status == 0 { InterruptCleanup.willRun(id) }
        guard status == 0 else {
            close(ends.reading)
            throw LabError("\(words.first ?? ""): cannot be started: error \(status)")
        }
    }

    deinit { close(output) }

    /// The next line of its output, without line end; nil at the end of output. Blocks for at most `seconds`.
    package func nextLine(within seconds: Int32) -> String? {
        var line: [UInt8] = []
        while line.count < 4_096 {
            var waiting = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, seconds * 1_000) > 0 else { return nil }
            var byte: UInt8 = 0
            guard read(output, &byte, 1) == 1 else { return nil }
            if byte == 0x0A { break }
            line.append(byte)
        }
        return String(decoding: line, as: UTF8.self)
    }

    /// The rest of its output until it ends. Blocks for at most `seconds` between two pieces.
    package func rest(within seconds: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < 8 << 20 {
            var waiting = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, seconds * 1_000) > 0 else { break }
            let count = read(output, &piece, piece.count)
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return bytes
    }

    /// Sends it a signal, and waits until it has ended; kills it after ten seconds. Returns the exit status,
    /// or 128 plus the signal's number.
    @discardableResult
    package func end(_ signal: Int32 = SIGTERM) -> Int32 {
        kill(id, signal)
        return wait()
    }

    /// Waits until it has ended; kills it after ten seconds.
    package func wait() -> Int32 {
        var status: Int32 = 0
        defer { InterruptCleanup.didEnd(id) }
        for _ in 0..<1_000 {
            if waitpid(id, &status, WNOHANG) == id { return ChildProcess.meaning(of: status) }
            usleep(10_000)
        }
        kill(id, SIGKILL)
        waitpid(id, &status, 0)
        return ChildProcess.meaning(of: status)
    }

    /// Prevents children from inheriting connections, so that these end when the lab closes them.
    package static func closeFilesOnExec() {
        for name in (try? Files.names(in: "/proc/self/fd")) ?? [] {
            if let file = Int32(name), file > 2 { _ = fcntl(file, F_SETFD, FD_CLOEXEC) }
        }
    }

    private static func pipe() throws(LabError) -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else {
            throw LabError("no pipe: error \(errno)")
        }
        return (ends[0], ends[1])
    }

    private static func meaning(of status: Int32) -> Int32 {
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func spawn(
        _ id: inout pid_t, arguments words: [String], environment: [String: String],
        actions: inout posix_spawn_file_actions_t
    ) -> Int32 {
        let arguments = words.map { strdup($0) }
        let variables = environment.map { strdup("\($0.key)=\($0.value)") }
        defer { for pointer in arguments + variables { free(pointer) } }
        closeFilesOnExec()
        // The lab's main thread blocks signals in order to wait for them; a child must receive its own.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        return posix_spawn(
            &id, words.first ?? "", &actions, &attributes, arguments + [nil], variables + [nil])
    }
}

/// Ends children and removes folders when a run is interrupted.
package enum InterruptCleanup {
    private struct Leftovers {
        var processes: Set<pid_t> = []
        var folders: Set<String> = []
    }

    private static let leftovers = Locked(Leftovers())

    package static func willRun(_ process: pid_t) { leftovers.with { _ = $0.processes.insert(process) } }

    package static func didEnd(_ process: pid_t) { leftovers.with { _ = $0.processes.remove(process) } }

    static func willFill(_ folder: String) { leftovers.with { _ = $0.folders.insert(folder) } }

    static func didRemove(_ folder: String) { leftovers.with { _ = $0.folders.remove(folder) } }

    /// From now on SIGINT, SIGTERM and SIGHUP clean up and then end this process with 128 plus the signal's
    /// number. Call before any thread starts: threads inherit the signal mask.
    package static func install() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let waited = set
        DispatchQueue(label: "interruption").async {
            var (set, number) = (waited, Int32(0))
            guard sigwait(&set, &number) == 0 else { return }
            removeLeftovers()
            exit(128 + number)
        }
    }

    /// Ends and removes what an error left behind; nothing if every stage was torn down.
    package static func removeLeftovers() {
        let left = leftovers.with { $0 }
        for process in left.processes { kill(process, SIGKILL) }
        for folder in left.folders { Files.removeFolder(folder) }
    }
}
