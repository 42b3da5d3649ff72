#if os(Linux)
    import CTPM
    import CountersignSeal
    import Glibc

    /// A TPM with its storage key loaded, and a session salted with that key which encrypts what is secret on the way to the chip and
    /// back: whoever listens on its bus reads nothing. All of it goes with the value.
    final class TPMSession {
        private let transport: OpaquePointer
        private(set) var context: OpaquePointer?
        private(set) var parent = cs_tpm_none()
        private(set) var session = cs_tpm_none()

        init(_ device: String) throws(VaultProblem) {
            // Looked at first, since the library complains of a missing file on standard error, which is the program's.
            if device.hasPrefix("device:"), access(String(device.dropFirst(7)), R_OK | W_OK) != 0 {
                throw .failed("TPM: \(device.dropFirst(7)): \(String(cString: strerror(errno)))")
            }
            var transport: OpaquePointer?
            let status = Tss2_TctiLdr_Initialize(device, &transport)
            guard status == 0, let transport else { throw TPMSession.problem("\(device) cannot be reached", status) }
            self.transport = transport
            try TPMSession.check(Esys_Initialize(&context, transport, nil), "does not answer")
            try makeParent()
            try start()
        }

        deinit {
            if session != cs_tpm_none() { Esys_FlushContext(context, session) }
            if parent != cs_tpm_none() { Esys_FlushContext(context, parent) }
            Esys_Finalize(&context)
            var transport: OpaquePointer? = transport
            Tss2_TctiLdr_Finalize(&transport)
        }

        /// The owner's storage key: always the same, for it comes from the seed and this template.
        private func makeParent() throws(VaultProblem) {
            var template = TPM2B_PUBLIC()
            template.publicArea.type = TPM2_ALG_ID(TPM2_ALG_ECC)
            template.publicArea.nameAlg = TPM2_ALG_ID(TPM2_ALG_SHA256)
            template.publicArea.objectAttributes = cs_tpm_parent_attributes()
            template.publicArea.parameters.eccDetail.symmetric = TPMSession.cipher
            template.publicArea.parameters.eccDetail.scheme.scheme = TPM2_ALG_ID(TPM2_ALG_NULL)
            template.publicArea.parameters.eccDetail.curveID = TPM2_ECC_CURVE(TPM2_ECC_NIST_P256)
            template.publicArea.parameters.eccDetail.kdf.scheme = TPM2_ALG_ID(TPM2_ALG_NULL)
            var sensitive = TPM2B_SENSITIVE_CREATE()
            var none = TPM2B_DATA()
            var pcrs = TPML_PCR_SELECTION()
            let status = Esys_CreatePrimary(
                context, cs_tpm_owner(), cs_tpm_password(), cs_tpm_none(), cs_tpm_none(), &sensitive, &template, &none,
                &pcrs,
                &parent, nil, nil, nil, nil)
            try TPMSession.check(status, "makes no storage key")
        }

        private func start() throws(VaultProblem) {
            var cipher = TPMT_SYM_DEF()
            cipher.algorithm = TPMSession.cipher.algorithm
            cipher.keyBits = TPMSession.cipher.keyBits
            cipher.mode = TPMSession.cipher.mode
            let status = Esys_StartAuthSession(
                context, parent, cs_tpm_none(), cs_tpm_none(), cs_tpm_none(), cs_tpm_none(), nil, TPM2_SE(TPM2_SE_HMAC),
                &cipher,
                TPM2_ALG_ID(TPM2_ALG_SHA256), &session)
            try TPMSession.check(status, "starts no session")
            try TPMSession.check(
                Esys_TRSess_SetAttributes(context, session, cs_tpm_session_attributes(), 0xFF), "encrypts no session")
        }

        func create(
            _ sensitive: inout TPM2B_SENSITIVE_CREATE, _ template: inout TPM2B_PUBLIC
        ) throws(VaultProblem) -> [UInt8] {
            var none = TPM2B_DATA()
            var pcrs = TPML_PCR_SELECTION()
            var secretPart: UnsafeMutablePointer<TPM2B_PRIVATE>?
            var publicPart: UnsafeMutablePointer<TPM2B_PUBLIC>?
            let status = Esys_Create(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &sensitive, &template, &none, &pcrs,
                &secretPart,
                &publicPart, nil, nil, nil)
            defer {
                Esys_Free(secretPart)
                Esys_Free(publicPart)
            }
            try TPMSession.check(status, "seals nothing")
            guard let publicPart, let secretPart, let bytes = TPMObject.bytes(publicPart, secretPart) else {
                throw .failed("TPM: what it sealed cannot be written")
            }
            return bytes
        }

        func unseal(_ sealed: [UInt8]) throws(VaultProblem) -> Secret {
            guard var parts = TPMObject(sealed) else { throw .failed("TPM: not an object that it sealed") }
            var object = cs_tpm_none()
            let loaded = Esys_Load(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &parts.privatePart, &parts.publicPart, &object)
            try TPMSession.check(
                loaded, "does not know this object: another machine's, altered, or the TPM was cleared")
            defer { Esys_FlushContext(context, object) }
            var data: UnsafeMutablePointer<TPM2B_SENSITIVE_DATA>?
            let status = Esys_Unseal(context, object, session, cs_tpm_none(), cs_tpm_none(), &data)
            try TPMSession.check(status, "does not open this object")
            guard let data else { throw .failed("TPM: gave nothing") }
            defer {
                explicit_bzero(data, MemoryLayout<TPM2B_SENSITIVE_DATA>.size)
                Esys_Free(data)
            }
            return withUnsafeBytes(of: &data.pointee.buffer) { bytes in
                Secret(
                    copying: Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(data.pointee.size)))))
            }
        }

        /// AES-128 in CFB mode, which every TPM 2.0 has.
        private static var cipher: TPMT_SYM_DEF_OBJECT {
            var cipher = TPMT_SYM_DEF_OBJECT()
            cipher.algorithm = TPM2_ALG_ID(TPM2_ALG_AES)
            cipher.keyBits.aes = 128
            cipher.mode.aes = TPM2_ALG_ID(TPM2_ALG_CFB)
            return cipher
        }

        private static func check(_ status: TSS2_RC, _ what: String) throws(VaultProblem) {
            guard status == 0 else { throw problem(what, status) }
        }

        static func problem(_ what: String, _ status: TSS2_RC) -> VaultProblem {
            .failed("TPM: \(what): \(Tss2_RC_Decode(status).map { String(cString: $0) } ?? String(status, radix: 16))")
        }
    }
#endif
