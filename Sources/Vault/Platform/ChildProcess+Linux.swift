#if os(Linux)
    import CountersignSeal
    import Glibc

    /// A program that is given bytes on its standard input and answers on its standard output; what it complains of is not ours to show.
    /// Both ends are one socket, because what is sent to a program that has ended raises no signal there.
    struct ChildProcess {
        private let process: pid_t
        private let socket: Int32

        init(_ program: String, _ words: [String]) throws(VaultProblem) {
            var pair: [Int32] = [-1, -1]
            let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw .failed("no socket can be had") }
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_adddup2(&actions, pair[1], 0)
            posix_spawn_file_actions_adddup2(&actions, pair[1], 1)
            posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
            var arguments: [UnsafeMutablePointer<CChar>?] = ([program] + words).map { strdup($0) } + [nil]
            defer { arguments.forEach { free($0) } }
            var process: pid_t = 0
            let status = posix_spawn(&process, program, &actions, nil, &arguments, environ)
            close(pair[1])
            self.process = process
            socket = pair[0]
            guard status == 0 else {
                close(socket)
                throw .failed("\(program): \(String(cString: strerror(status)))")
            }
        }

        /// What it says, once it has taken `input`; shorter than a socket is deep, so that neither side waits for the other. Nil
        /// where it does not exit with 0, or says nothing, or more than `most` bytes.
        func exchange(_ input: Secret, most: Int) -> Secret? {
            let isTaken = input.withExposedBytes { bytes in
                bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) == $0.count }
            }
            shutdown(socket, Int32(SHUT_WR))
            var bytes = [UInt8](repeating: 0, count: most + 1)
            defer { bytes.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } } }
            var count = 0
            while count < bytes.count {
                let here = bytes.withUnsafeMutableBytes {
                    read(socket, $0.baseAddress.map { $0 + count }, $0.count - count)
                }
                if here < 0, errno == EINTR { continue }
                guard here > 0 else { break }
                count += here
            }
            close(socket)
            guard exitStatus() == 0, isTaken, (1...most).contains(count) else { return nil }
            return Secret(copying: bytes.span.extracting(0..<count))
        }

        private func exitStatus() -> Int32? {
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0 {
                guard errno == EINTR else { return nil }
            }
            return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
        }
    }
#endif
