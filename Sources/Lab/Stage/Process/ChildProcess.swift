import Glibc

/// A process that the lab has started, and so may end. Its standard output is read by the lines, its standard error goes to a file.
package final class ChildProcess: Sendable {
    package let id: pid_t
    private let output: Int32

    /// Starts `words[0]`, a path, with the rest as arguments. `input`, of a pipe's 60 kB at most, is its standard input; `environment` is
    /// all that it gets of one; `path` is where its standard error goes.
    package init(
        _ words: [String], input: [UInt8] = [], environment: [String: String], errors path: String
    ) throws(StageFault) {
        let ends = try ChildProcess.pipe()
        let typed = try ChildProcess.pipe()
        defer { close(typed.reading) }
        guard input.count <= 61_440, input.isEmpty || write(typed.writing, input, input.count) == input.count else {
            throw StageFault("input of \(input.count) bytes does not fit into a pipe")
        }
        close(typed.writing)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, typed.reading, 0)
        posix_spawn_file_actions_adddup2(&actions, ends.writing, 1)
        posix_spawn_file_actions_addopen(&actions, 2, path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        var id = pid_t()
        let status = ChildProcess.spawn(&id, words, environment, &actions)
        close(ends.writing)
        output = ends.reading
        self.id = id
        if status == 0 { Interruption.willRun(id) }
        guard status == 0 else {
            close(ends.reading)
            throw StageFault("\(words.first ?? ""): cannot be started: error \(status)")
        }
    }

    deinit { close(output) }

    /// The next line that it prints, without its end; nil once it prints no more. Blocks its thread, for `seconds` at most.
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

    /// Everything that it prints until it ends. Blocks its thread, for `seconds` between two pieces at most.
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

    /// Sends it a signal, and waits until it has ended; after ten seconds it is killed. The exit status, or 128 and the signal's number.
    @discardableResult
    package func end(_ signal: Int32 = SIGTERM) -> Int32 {
        kill(id, signal)
        return wait()
    }

    /// Waits until it has ended by itself, for ten seconds; then it is killed.
    package func wait() -> Int32 {
        var status: Int32 = 0
        defer { Interruption.didEnd(id) }
        for _ in 0..<1_000 {
            if waitpid(id, &status, WNOHANG) == id { return ChildProcess.meaning(of: status) }
            usleep(10_000)
        }
        kill(id, SIGKILL)
        waitpid(id, &status, 0)
        return ChildProcess.meaning(of: status)
    }

    /// Connections of victims and attackers must end when they are closed here, whatever a child was started meanwhile.
    package static func keepOwnFiles() {
        for name in (try? Files.names(in: "/proc/self/fd")) ?? [] {
            if let file = Int32(name), file > 2 { _ = fcntl(file, F_SETFD, FD_CLOEXEC) }
        }
    }

    private static func pipe() throws(StageFault) -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw StageFault("no pipe: error \(errno)")
        }
        return (ends[0], ends[1])
    }

    private static func meaning(of status: Int32) -> Int32 {
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func spawn(
        _ id: inout pid_t, _ words: [String], _ environment: [String: String],
        _ actions: inout posix_spawn_file_actions_t
    ) -> Int32 {
        let arguments = words.map { strdup($0) }
        let variables = environment.map { strdup("\($0.key)=\($0.value)") }
        defer { for pointer in arguments + variables { free(pointer) } }
        keepOwnFiles()
        // The lab's main thread blocks signals so that it can take them; a server has to get its own.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        return posix_spawn(&id, words.first ?? "", &actions, &attributes, arguments + [nil], variables + [nil])
    }
}
