#if os(Linux) && TPM
    import CTPM
    import CountersignSeal
    import Glibc

    /// A TPM with its storage key loaded, and a session salted with that key, which encrypts secrets on the
    /// way to the chip and back, so that a listener on its bus learns nothing. The handles are freed with the
    /// value.
    final class TPMSession {
        let tpm: TPMLibrary
        private let transport: OpaquePointer
        private(set) var context: OpaquePointer?
        private(set) var parent = cs_tpm_none()
        private(set) var session = cs_tpm_none()

        init(_ device: String) throws(VaultError) {
            // Checked first, because the library reports a missing file on the program's standard error.
            if device.hasPrefix("device:"), access(String(device.dropFirst(7)), R_OK | W_OK) != 0 {
                throw .failed("TPM: \(device.dropFirst(7)): \(String(cString: strerror(errno)))")
            }
            tpm = try TPMLibrary.loaded.get()
            var transport: OpaquePointer?
            let status = tpm.Tss2_TctiLdr_Initialize(device, &transport)
            guard status == 0, let transport else {
                throw tpm.vaultError("\(device) cannot be reached", status: status)
            }
            self.transport = transport
            try tpm.check(tpm.Esys_Initialize(&context, transport, nil), failure: "does not answer")
            try makeParent()
            try start()
        }

        deinit {
            if session != cs_tpm_none() { _ = tpm.Esys_FlushContext(context, session) }
            if parent != cs_tpm_none() { _ = tpm.Esys_FlushContext(context, parent) }
            tpm.Esys_Finalize(&context)
            var transport: OpaquePointer? = transport
            tpm.Tss2_TctiLdr_Finalize(&transport)
        }

        /// The owner's storage key: always the same, for it comes from the seed and this template.
        private func makeParent() throws(VaultError) {
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
            let status = tpm.Esys_CreatePrimary(
                context, cs_tpm_owner(), cs_tpm_password(), cs_tpm_none(), cs_tpm_none(), &sensitive,
                &template, &none,
                &pcrs,
                &parent, nil, nil, nil, nil)
            try tpm.check(status, failure: "makes no storage key")
        }

        private func start() throws(VaultError) {
            var cipher = TPMT_SYM_DEF()
            cipher.algorithm = TPMSession.cipher.algorithm
            cipher.keyBits = TPMSession.cipher.keyBits
            cipher.mode = TPMSession.cipher.mode
            let status = tpm.Esys_StartAuthSession(
                context, parent, cs_tpm_none(), cs_tpm_none(), cs_tpm_none(), cs_tpm_none(), nil,
                TPM2_SE(TPM2_SE_HMAC),
                &cipher,
                TPM2_ALG_ID(TPM2_ALG_SHA256), &session)
            try tpm.check(status, failure: "starts no session")
            try tpm.check(
                tpm.Esys_TRSess_SetAttributes(context, session, cs_tpm_session_attributes(), 0xFF),
                failure: "encrypts no session")
        }

        func create(
            _ sensitive: inout TPM2B_SENSITIVE_CREATE, template: inout TPM2B_PUBLIC
        ) throws(VaultError) -> [UInt8] {
            var none = TPM2B_DATA()
            var pcrs = TPML_PCR_SELECTION()
            var secretPart: UnsafeMutablePointer<TPM2B_PRIVATE>?
            var publicPart: UnsafeMutablePointer<TPM2B_PUBLIC>?
            let status = tpm.Esys_Create(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &sensitive, &template, &none, &pcrs,
                &secretPart,
                &publicPart, nil, nil, nil)
            defer {
                tpm.Esys_Free(secretPart)
                tpm.Esys_Free(publicPart)
            }
            try tpm.check(status, failure: "seals nothing")
            guard let publicPart, let secretPart,
                let bytes = tpm.bytes(publicPart: publicPart, privatePart: secretPart)
            else {
                throw .failed("TPM: what it sealed cannot be written")
            }
            return bytes
        }

        func unseal(_ sealed: [UInt8]) throws(VaultError) -> Secret {
            guard var parts = TPMObject(sealed, by: tpm) else {
                throw .failed("TPM: not an object that it sealed")
            }
            var object = cs_tpm_none()
            let loaded = tpm.Esys_Load(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &parts.privatePart, &parts.publicPart,
                &object)
            try tpm.check(
                loaded,
                failure: "does not know this object: another machine's, altered, or the TPM was cleared")
            defer { _ = tpm.Esys_FlushContext(context, object) }
            var data: UnsafeMutablePointer<TPM2B_SENSITIVE_DATA>?
            let status = tpm.Esys_Unseal(context, object, session, cs_tpm_none(), cs_tpm_none(), &data)
            try tpm.check(status, failure: "does not open this object")
            guard let data else { throw .failed("TPM: gave nothing") }
            defer {
                explicit_bzero(data, MemoryLayout<TPM2B_SENSITIVE_DATA>.size)
                tpm.Esys_Free(data)
            }
            return withUnsafeBytes(of: &data.pointee.buffer) { bytes in
                Secret(
                    copying: Span(
                        _unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(data.pointee.size)))))
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
    }

    /// Key pairs on P-256 under a TPM's storage key.
    extension TPMSession {
        func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> (point: P256Point, object: [UInt8]) {
            var template = TPM2B_PUBLIC()
            template.publicArea.type = TPM2_ALG_ID(TPM2_ALG_ECC)
            template.publicArea.nameAlg = TPM2_ALG_ID(TPM2_ALG_SHA256)
            template.publicArea.objectAttributes =
                use == .signing ? cs_tpm_signing_attributes() : cs_tpm_agreement_attributes()
            template.publicArea.parameters.eccDetail.symmetric.algorithm = TPM2_ALG_ID(TPM2_ALG_NULL)
            template.publicArea.parameters.eccDetail.scheme.scheme = TPM2_ALG_ID(TPM2_ALG_NULL)
            if use == .signing {
                template.publicArea.parameters.eccDetail.scheme.scheme = TPM2_ALG_ID(TPM2_ALG_ECDSA)
                template.publicArea.parameters.eccDetail.scheme.details.ecdsa.hashAlg = TPM2_ALG_ID(
                    TPM2_ALG_SHA256)
            }
            template.publicArea.parameters.eccDetail.curveID = TPM2_ECC_CURVE(TPM2_ECC_NIST_P256)
            template.publicArea.parameters.eccDetail.kdf.scheme = TPM2_ALG_ID(TPM2_ALG_NULL)
            var sensitive = TPM2B_SENSITIVE_CREATE()
            var none = TPM2B_DATA()
            var pcrs = TPML_PCR_SELECTION()
            var secretPart: UnsafeMutablePointer<TPM2B_PRIVATE>?
            var publicPart: UnsafeMutablePointer<TPM2B_PUBLIC>?
            let status = tpm.Esys_Create(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &sensitive, &template, &none, &pcrs,
                &secretPart, &publicPart, nil, nil, nil)
            defer {
                tpm.Esys_Free(secretPart)
                tpm.Esys_Free(publicPart)
            }
            guard status == 0, let secretPart, let publicPart else {
                throw .unavailable(text("makes no key on P-256", status: status))
            }
            guard let point = TPMObject.point(publicPart.pointee.publicArea),
                let object = tpm.bytes(publicPart: publicPart, privatePart: secretPart)
            else { throw .unavailable("TPM: made a key that cannot be read") }
            return (point, object)
        }

        /// `body` with the handle of the key, loaded for as long as it runs.
        func withKey<Value>(
            _ object: [UInt8], perform body: (ESYS_TR) throws(DeviceKeyError) -> Value
        ) throws(DeviceKeyError) -> Value {
            guard var parts = TPMObject(object, by: tpm) else {
                throw .lost("TPM: not a key that it wrapped")
            }
            var key = cs_tpm_none()
            let status = tpm.Esys_Load(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &parts.privatePart, &parts.publicPart,
                &key)
            guard status == 0 else {
                let text = self.text("does not load the device's key", status: status)
                throw TPMSession.concernsTheObject(status)
                    ? .lost("\(text): the TPM was cleared or replaced, or the key was altered")
                    : .unavailable(text)
            }
            defer { _ = tpm.Esys_FlushContext(context, key) }
            return try body(key)
        }

        /// `r ‖ s`, 64 bytes. `digest` is a SHA-256.
        func sign(digest: [UInt8], with object: [UInt8]) throws(DeviceKeyError) -> [UInt8] {
            try withKey(object) { (key) throws(DeviceKeyError) in
                var input = TPM2B_DIGEST()
                input.size = UInt16(digest.count)
                withUnsafeMutableBytes(of: &input.buffer) { $0.copyBytes(from: digest.prefix($0.count)) }
                var scheme = TPMT_SIG_SCHEME()
                scheme.scheme = TPM2_ALG_ID(TPM2_ALG_ECDSA)
                scheme.details.ecdsa.hashAlg = TPM2_ALG_ID(TPM2_ALG_SHA256)
                // The key is not restricted, so the TPM takes a digest that it did not compute.
                var ticket = cs_tpm_no_ticket()
                var signature: UnsafeMutablePointer<TPMT_SIGNATURE>?
                let status = tpm.Esys_Sign(
                    context, key, session, cs_tpm_none(), cs_tpm_none(), &input, &scheme, &ticket, &signature)
                defer { tpm.Esys_Free(signature) }
                guard status == 0, let signature else {
                    throw .unavailable(text("does not sign", status: status))
                }
                let numbers = signature.pointee.signature.ecdsa
                guard let r = TPMObject.coordinate(numbers.signatureR),
                    let s = TPMObject.coordinate(numbers.signatureS)
                else { throw .unavailable("TPM: gave a signature that is none on P-256") }
                return r + s
            }
        }

        /// `point` is known to be on the curve.
        func sharedSecret(with point: P256Point, of object: [UInt8]) throws(DeviceKeyError) -> Secret {
            try withKey(object) { (key) throws(DeviceKeyError) in
                var input = TPM2B_ECC_POINT()
                input.point.x = TPMSession.parameter(point.bytes[1..<33])
                input.point.y = TPMSession.parameter(point.bytes[33...])
                var product: UnsafeMutablePointer<TPM2B_ECC_POINT>?
                let status = tpm.Esys_ECDH_ZGen(
                    context, key, session, cs_tpm_none(), cs_tpm_none(), &input, &product)
                guard status == 0, let product else {
                    throw .unavailable(text("agrees on no key", status: status))
                }
                defer {
                    explicit_bzero(product, MemoryLayout<TPM2B_ECC_POINT>.size)
                    tpm.Esys_Free(product)
                }
                guard var x = TPMObject.coordinate(product.pointee.point.x) else {
                    throw .unavailable("TPM: gave a point that is none on P-256")
                }
                return Secret(taking: &x)
            }
        }

        private static func parameter(_ bytes: ArraySlice<UInt8>) -> TPM2B_ECC_PARAMETER {
            var number = TPM2B_ECC_PARAMETER()
            number.size = UInt16(bytes.count)
            withUnsafeMutableBytes(of: &number.buffer) { $0.copyBytes(from: bytes.prefix($0.count)) }
            return number
        }

        /// Whether a failed load is the fault of what was to be loaded: the TPM's own response (layer 0), of
        /// format one, about a parameter. Warnings (busy, no memory, lockout) and the library's own codes are
        /// not. Source: TPM 2.0 Library, Part 2 §6.6.2.
        private static func concernsTheObject(_ status: TSS2_RC) -> Bool {
            status >> 16 == 0 && status & 0x80 != 0 && status & 0x40 != 0
        }

        private func text(_ what: String, status: TSS2_RC) -> String {
            tpm.vaultError(what, status: status).detail
        }
    }
#endif
