#if os(Linux) && TPM
    import CTPM
    import CountersignSeal
    import Glibc

    /// A key that this machine's TPM opens and no other does. It is a sealed object under a storage key that
    /// the TPM derives from its seed each time, so nothing is stored inside. Not bound to PCRs: a new
    /// firmware is no reason to sign a user out. Source: TPM 2.0 Library, Part 1 §22, Part 3 §12.1, §12.7 and
    /// §24.1.
    ///
    /// Kept: length (2) ‖ public part ‖ private part, as `tss2-mu` writes them.
    package struct TPMGuard: KeyGuard {
        package let kind = KeyGuardKind.tpm

        private let device: String

        /// `device` is a TCTI and its settings: `swtpm:host=127.0.0.1,port=2321` for a simulator.
        package init(device: String = "device:/dev/tpmrm0") { self.device = device }

        /// Nil on a machine without one, or where this process may not use it.
        static var ofThisMachine: TPMGuard? { access("/dev/tpmrm0", R_OK | W_OK) == 0 ? TPMGuard() : nil }

        package func seal(_ key: Secret) throws(VaultError) -> [UInt8] {
            let session = try TPMSession(device)
            var sensitive = TPM2B_SENSITIVE_CREATE()
            defer { withUnsafeMutableBytes(of: &sensitive) { wipe($0) } }
            sensitive.sensitive.data.size = UInt16(key.count)
            key.withExposedBytes { bytes in
                bytes.withUnsafeBytes { source in
                    withUnsafeMutableBytes(of: &sensitive.sensitive.data.buffer) {
                        $0.copyMemory(from: source)
                    }
                }
            }
            var template = TPM2B_PUBLIC()
            template.publicArea.type = TPM2_ALG_ID(TPM2_ALG_KEYEDHASH)
            template.publicArea.nameAlg = TPM2_ALG_ID(TPM2_ALG_SHA256)
            template.publicArea.objectAttributes = cs_tpm_sealed_attributes()
            template.publicArea.parameters.keyedHashDetail.scheme.scheme = TPM2_ALG_ID(TPM2_ALG_NULL)
            return try session.create(&sensitive, template: &template)
        }

        package func open(_ sealed: [UInt8]) throws(VaultError) -> Secret {
            try TPMSession(device).unseal(sealed)
        }
    }

    private func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
        for index in bytes.indices { bytes.storeBytes(of: 0, toByteOffset: index, as: UInt8.self) }
    }

    /// The TPM 2.0 Software Stack: its API, what it writes, and the way to a device.
    typealias TPMLibrary = LoadedLibrary<cs_tpm_functions>

    extension TPMLibrary {
        static let loaded = LazyLibrary { () throws(VaultError) in
            try load(
                [
                    "libtss2-mu.so.0": "libtss2-mu0", "libtss2-rc.so.0": "libtss2-rc0",
                    "libtss2-esys.so.0": "libtss2-esys-3.0.2-0", "libtss2-tctildr.so.0": "libtss2-tctildr0",
                ], by: cs_tpm_functions_resolve
            ).get()
        }

        func check(_ status: TSS2_RC, failure what: String) throws(VaultError) {
            guard status == 0 else { throw vaultError(what, status: status) }
        }

        func vaultError(_ what: String, status: TSS2_RC) -> VaultError {
            let text = self.Tss2_RC_Decode(status).map { String(cString: $0) }
            return .failed("TPM: \(what): \(text ?? String(status, radix: 16))")
        }

        /// Nil where the library cannot write them.
        func bytes(
            publicPart: UnsafePointer<TPM2B_PUBLIC>, privatePart: UnsafePointer<TPM2B_PRIVATE>
        ) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: TPMObject.longest)
            var middle = 2
            guard self.Tss2_MU_TPM2B_PUBLIC_Marshal(publicPart, &bytes, bytes.count, &middle) == 0 else {
                return nil
            }
            var end = middle
            guard self.Tss2_MU_TPM2B_PRIVATE_Marshal(privatePart, &bytes, bytes.count, &end) == 0 else {
                return nil
            }
            (bytes[0], bytes[1]) = (UInt8((middle - 2) >> 8), UInt8((middle - 2) & 0xFF))
            return Array(bytes[..<end])
        }
    }

    /// What a TPM gave out for an object: its public part and its private part, which only that TPM opens.
    ///
    /// As bytes: length (2) ‖ public part ‖ private part, as `tss2-mu` writes them.
    struct TPMObject {
        var publicPart = TPM2B_PUBLIC()
        var privatePart = TPM2B_PRIVATE()

        /// More than any object of ours takes.
        static let longest = 4096

        /// Nil where `bytes` are not what the library's `bytes(publicPart:privatePart:)` wrote.
        init?(_ bytes: [UInt8], by tpm: TPMLibrary) {
            guard (3...TPMObject.longest).contains(bytes.count) else { return nil }
            var at = 2
            guard tpm.Tss2_MU_TPM2B_PUBLIC_Unmarshal(bytes, bytes.count, &at, &publicPart) == 0,
                at == 2 + (Int(bytes[0]) << 8 | Int(bytes[1])),
                tpm.Tss2_MU_TPM2B_PRIVATE_Unmarshal(bytes, bytes.count, &at, &privatePart) == 0,
                at == bytes.count
            else { return nil }
        }

        /// Of a key on P-256; nil for other objects.
        var point: P256Point? { TPMObject.point(publicPart.publicArea) }

        static func point(_ area: TPMT_PUBLIC) -> P256Point? {
            guard area.type == TPM2_ALG_ID(TPM2_ALG_ECC),
                area.parameters.eccDetail.curveID == TPM2_ECC_CURVE(TPM2_ECC_NIST_P256),
                let x = TPMObject.coordinate(area.unique.ecc.x),
                let y = TPMObject.coordinate(area.unique.ecc.y)
            else { return nil }
            return P256Point([0x04] + x + y)
        }

        /// 32 bytes, with the zeros in front that a TPM may leave out; nil for a number that is longer.
        static func coordinate(_ number: TPM2B_ECC_PARAMETER) -> [UInt8]? {
            let count = Int(number.size)
            guard count <= 32 else { return nil }
            let bytes = withUnsafeBytes(of: number.buffer) { Array($0.prefix(count)) }
            return [UInt8](repeating: 0, count: 32 - count) + bytes
        }
    }
#endif
