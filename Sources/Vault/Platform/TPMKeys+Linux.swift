#if os(Linux) && TPM
    import CTPM
    import CountersignSeal
    import Glibc

    /// Device keys that this machine's TPM makes and uses: their private halves leave it only wrapped under
    /// its storage key. Nothing is stored in the TPM. Source: TPM 2.0 Library, Part 1 §23 and §C.6, Part 3
    /// §12.1, §14.5 and §20.2.
    ///
    /// Wrapped: use (1) ‖ length (2) ‖ public part ‖ private part, as `tss2-mu` writes them.
    package struct TPMKeys: DeviceKeyBackEnd {
        package let storage = KeyStorage.tpm

        fileprivate let device: String
        private let deadline: DeadlineQueue

        /// `device` is a TCTI with its settings, as for ``TPMGuard``. `patience` bounds each call.
        package init(device: String = TPMKeys.standardDevice, patience: Duration = .seconds(20)) {
            self.device = device
            deadline = DeadlineQueue("countersign.tpm", patience: patience)
        }

        /// The kernel's resource manager, which several programs may use at once.
        package static let standardDevice = "device:\(path)"
        private static let path = "/dev/tpmrm0"

        /// Nil on a machine without a TPM, or where this process may not open it.
        package static var ofThisMachine: TPMKeys? { access(path, R_OK | W_OK) == 0 ? TPMKeys() : nil }

        package func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey {
            let made = try perform { (tpm) throws(DeviceKeyError) in try tpm.makeKey(for: use) }
            return WrappedKey(
                point: made.point, wrapped: Secret(copying: ([use.rawValue] + made.object).span))
        }

        package func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle {
            TPMKey(self, point: try point(of: wrapped, for: .signing), object: TPMKeys.object(of: wrapped))
        }

        package func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle {
            TPMKey(self, point: try point(of: wrapped, for: .agreement), object: TPMKeys.object(of: wrapped))
        }

        /// Read from the public part, without the TPM, which compares it with the private part when it loads
        /// both.
        private func point(of wrapped: Secret, for use: DeviceKeyUse) throws(DeviceKeyError) -> P256Point {
            let bytes = wrapped.withExposedBytes { span in span.indices.map { span[$0] } }
            // A library that is missing says nothing about the key.
            let tpm: TPMLibrary
            do throws(VaultError) {
                tpm = try TPMLibrary.loaded.get()
            } catch {
                throw .unavailable("TPM: \(error.detail)")
            }
            guard bytes.first == use.rawValue, let parts = TPMObject(Array(bytes.dropFirst()), by: tpm),
                let point = parts.point
            else { throw .lost("TPM: not a key that it wrapped") }
            return point
        }

        private static func object(of wrapped: Secret) -> [UInt8] {
            wrapped.withExposedBytes { span in span.indices.dropFirst().map { span[$0] } }
        }

        fileprivate func perform<Value: Sendable>(
            _ work: @escaping @Sendable (TPMSession) throws(DeviceKeyError) -> Value
        ) throws(DeviceKeyError) -> Value {
            let device = device
            let result = deadline.run { () -> Result<Value, DeviceKeyError> in
                do throws(DeviceKeyError) {
                    return .success(try work(TPMKeys.session(device)))
                } catch {
                    return .failure(error)
                }
            }
            guard let result else { throw .unavailable("TPM: \(device) does not answer in time") }
            return try result.get()
        }

        /// Whatever keeps a session from beginning says nothing about a key.
        private static func session(_ device: String) throws(DeviceKeyError) -> TPMSession {
            do {
                return try TPMSession(device)
            } catch {
                throw .unavailable(error.detail)
            }
        }
    }

    /// A key that the TPM loads for each use: it has room for three objects, and others want it, too.
    private struct TPMKey: DeviceSigningKeyHandle, DeviceAgreementKeyHandle {
        let point: P256Point
        private let keys: TPMKeys
        private let object: [UInt8]

        init(_ keys: TPMKeys, point: P256Point, object: [UInt8]) {
            self.keys = keys
            self.point = point
            self.object = object
        }

        func verifyUsable() throws(DeviceKeyError) {
            let object = object
            try keys.perform { (tpm) throws(DeviceKeyError) in
                try tpm.withKey(object) { (_) throws(DeviceKeyError) in }
            }
        }

        func sign(_ message: [UInt8]) throws(DeviceKeyError) -> [UInt8] {
            let digest = SHA256.digest(message.span)
            let (object, bytes) = (object, digest.indices.map { digest[$0] })
            return try keys.perform { (tpm) throws(DeviceKeyError) in
                try tpm.sign(digest: bytes, with: object)
            }
        }

        func sharedSecret(with point: P256Point) throws(DeviceKeyError) -> Secret {
            guard point.isOnCurve else { throw .badPoint }
            let object = object
            return try keys.perform { (tpm) throws(DeviceKeyError) in
                try tpm.sharedSecret(with: point, of: object)
            }
        }
    }

    extension DeviceKeyHardware {
        /// The TPM; nil on a machine without one, or where this process may not open it.
        package static var ofThisMachine: (any DeviceKeyBackEnd)? { TPMKeys.ofThisMachine }
    }
#endif
