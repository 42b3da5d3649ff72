#if os(Linux)
    import CTPM
    import CountersignSeal
    import Glibc

    /// A key that this machine's TPM opens and no other does. It is a sealed object under a storage key that the TPM derives from its
    /// seed each time, so nothing is stored inside. Not bound to PCRs: a new firmware is no reason to sign a user out. Source:
    /// TPM 2.0 Library, Part 1 §22, Part 3 §12.1, §12.7 and §24.1.
    ///
    /// Kept: length (2) ‖ public part ‖ private part, as `tss2-mu` writes them.
    package struct TPMGuard: KeyGuard {
        package let kind = KeyGuardKind.tpm

        private let device: String

        /// `device` is a TCTI and its settings: `swtpm:host=127.0.0.1,port=2321` for a simulator.
        package init(device: String = "device:/dev/tpmrm0") { self.device = device }

        /// Nil on a machine without one, or where this process may not use it.
        static var ofThisMachine: TPMGuard? { access("/dev/tpmrm0", R_OK | W_OK) == 0 ? TPMGuard() : nil }

        package func seal(_ key: Secret) throws(VaultProblem) -> [UInt8] {
            let tpm = try TPMSession(device)
            var sensitive = TPM2B_SENSITIVE_CREATE()
            defer { withUnsafeMutableBytes(of: &sensitive) { wipe($0) } }
            sensitive.sensitive.data.size = UInt16(key.count)
            key.withExposedBytes { bytes in
                bytes.withUnsafeBytes { source in
                    withUnsafeMutableBytes(of: &sensitive.sensitive.data.buffer) { $0.copyMemory(from: source) }
                }
            }
            var template = TPM2B_PUBLIC()
            template.publicArea.type = TPM2_ALG_ID(TPM2_ALG_KEYEDHASH)
            template.publicArea.nameAlg = TPM2_ALG_ID(TPM2_ALG_SHA256)
            template.publicArea.objectAttributes = cs_tpm_sealed_attributes()
            template.publicArea.parameters.keyedHashDetail.scheme.scheme = TPM2_ALG_ID(TPM2_ALG_NULL)
            return try tpm.create(&sensitive, &template)
        }

        package func open(_ sealed: [UInt8]) throws(VaultProblem) -> Secret {
            try TPMSession(device).unseal(sealed)
        }
    }

    private func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
        for index in bytes.indices { bytes.storeBytes(of: 0, toByteOffset: index, as: UInt8.self) }
    }
#endif
