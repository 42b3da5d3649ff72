#if os(Linux)
    import CountersignSeal
    import Glibc

    /// A key under the machine's own credential secret, which only root can read: for services, which cannot
    /// ask a person. Source: systemd-creds(1). Not under its TPM: version 252 does not open what it sealed
    /// there without PCRs, and with PCR 7, its default, a firmware update would sign out every user.
    package struct SystemdCredsGuard: KeyGuard {
        package let kind = KeyGuardKind.systemdCreds

        private static let name = "--name=countersign-vault"
        private let program: String

        package init(program: String = "/usr/bin/systemd-creds") { self.program = program }

        package func seal(_ key: Secret) throws(VaultError) -> [UInt8] {
            let sealed = try run(
                ["encrypt", "--with-key=host", SystemdCredsGuard.name, "-", "-"], input: key)
            return sealed.withExposedBytes { bytes in bytes.indices.map { bytes[$0] } }
        }

        package func open(_ sealed: [UInt8]) throws(VaultError) -> Secret {
            try run(
                ["decrypt", "--newline=no", SystemdCredsGuard.name, "-", "-"],
                input: Secret(copying: sealed.span))
        }

        private func run(_ words: [String], input: Secret) throws(VaultError) -> Secret {
            guard let output = try ChildProcess(program, arguments: words).exchange(input, most: 32_768)
            else {
                throw .failed(
                    "\(program) \(words[0]): refused; only root may use the machine's credential secret")
            }
            return output
        }
    }

    /// A program that reads bytes from its standard input and answers on its standard output; its standard
    /// error is discarded. Both ends are one socket, because a write to a program that has ended raises no
    /// signal there.
    struct ChildProcess {
        private let process: pid_t
        private let socket: Int32

        init(_ program: String, arguments words: [String]) throws(VaultError) {
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

        /// The program's output after it has read `input`. `input` is shorter than a socket's buffer, so that
        /// neither side waits for the other. Nil if it does not exit with 0, or writes nothing or more than
        /// `most` bytes.
        func exchange(_ input: Secret, most: Int) -> Secret? {
            let isTaken = input.withExposedBytes { bytes in
                bytes.withUnsafeBytes {
                    send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) == $0.count
                }
            }
            shutdown(socket, Int32(SHUT_WR))
            var bytes = [UInt8](repeating: 0, count: most + 1)
            defer {
                bytes.withUnsafeMutableBytes {
                    if let start = $0.baseAddress { explicit_bzero(start, $0.count) }
                }
            }
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
