#if os(Linux)
    import CTPM
    import CountersignSeal
    import Glibc

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
            let status = Esys_Create(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &sensitive, &template, &none, &pcrs,
                &secretPart, &publicPart, nil, nil, nil)
            defer {
                Esys_Free(secretPart)
                Esys_Free(publicPart)
            }
            guard status == 0, let secretPart, let publicPart else {
                throw .unavailable(TPMSession.text("makes no key on P-256", status))
            }
            guard let point = TPMObject.point(publicPart.pointee.publicArea),
                let object = TPMObject.bytes(publicPart, secretPart)
            else { throw .unavailable("TPM: made a key that cannot be read") }
            return (point, object)
        }

        /// `body` with the handle of the key, loaded for as long as it runs.
        func withKey<Value>(
            _ object: [UInt8], _ body: (ESYS_TR) throws(DeviceKeyError) -> Value
        ) throws(DeviceKeyError) -> Value {
            guard var parts = TPMObject(object) else { throw .lost("TPM: not a key that it wrapped") }
            var key = cs_tpm_none()
            let status = Esys_Load(
                context, parent, session, cs_tpm_none(), cs_tpm_none(), &parts.privatePart, &parts.publicPart,
                &key)
            guard status == 0 else {
                let text = TPMSession.text("does not load the device's key", status)
                throw TPMSession.concernsTheObject(status)
                    ? .lost("\(text): the TPM was cleared or replaced, or the key was altered")
                    : .unavailable(text)
            }
            defer { Esys_FlushContext(context, key) }
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
                let status = Esys_Sign(
                    context, key, session, cs_tpm_none(), cs_tpm_none(), &input, &scheme, &ticket, &signature)
                defer { Esys_Free(signature) }
                guard status == 0, let signature else {
                    throw .unavailable(TPMSession.text("does not sign", status))
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
                let status = Esys_ECDH_ZGen(
                    context, key, session, cs_tpm_none(), cs_tpm_none(), &input, &product)
                guard status == 0, let product else {
                    throw .unavailable(TPMSession.text("agrees on no key", status))
                }
                defer {
                    explicit_bzero(product, MemoryLayout<TPM2B_ECC_POINT>.size)
                    Esys_Free(product)
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

        private static func text(_ what: String, _ status: TSS2_RC) -> String { problem(what, status).detail }
    }
#endif
