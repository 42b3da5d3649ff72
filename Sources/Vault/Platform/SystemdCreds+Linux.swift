#if os(Linux)
    import CountersignSeal
    import Glibc

    /// A key under the machine's own credential secret, which root alone may read: for services, which have nobody to ask. Source:
    /// systemd-creds(1). Not under its TPM: what version 252 seals there without PCRs it does not open, and with PCR 7, its
    /// default, a new firmware would sign everybody out.
    package struct SystemdCredsGuard: KeyGuard {
        package let kind = KeyGuardKind.systemdCreds

        private static let name = "--name=countersign-vault"
        private let program: String

        package init(program: String = "/usr/bin/systemd-creds") { self.program = program }

        package func seal(_ key: Secret) throws(VaultProblem) -> [UInt8] {
            let sealed = try run(["encrypt", "--with-key=host", SystemdCredsGuard.name, "-", "-"], key)
            return sealed.withExposedBytes { bytes in bytes.indices.map { bytes[$0] } }
        }

        package func open(_ sealed: [UInt8]) throws(VaultProblem) -> Secret {
            try run(["decrypt", "--newline=no", SystemdCredsGuard.name, "-", "-"], Secret(copying: sealed.span))
        }

        private func run(_ words: [String], _ input: Secret) throws(VaultProblem) -> Secret {
            guard let output = try ChildProcess(program, words).exchange(input, most: 32_768) else {
                throw .failed("\(program) \(words[0]): refused; only root may use the machine's credential secret")
            }
            return output
        }
    }
#endif
