import CountersignSeal

/// A place where a device's key pairs on P-256 are made and used: the program itself or a Secure Enclave.
///
/// Calls block their thread: hardware takes up to some seconds.
package protocol DeviceKeyBackEnd: Sendable {
    var storage: KeyStorage { get }

    /// A new key pair.
    func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey

    /// The signing key that ``makeKey(for:)`` has wrapped as `wrapped`.
    func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle

    /// The agreement key that ``makeKey(for:)`` has wrapped as `wrapped`.
    func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle
}

/// What a key pair does; none does both.
package enum DeviceKeyUse: UInt8, Sendable, CaseIterable {
    case signing = 1
    case agreement = 2
}

/// A key pair as it is stored: opened again by the back end that made it, on the device that made it.
package struct WrappedKey: Sendable {
    package let point: P256Point
    /// In software PKCS #8; in hardware bytes that only that hardware opens.
    package let wrapped: Secret

    package init(point: P256Point, wrapped: Secret) {
        self.point = point
        self.wrapped = wrapped
    }
}

/// A private key, or a reference to it in hardware.
package protocol DeviceKeyHandle: Sendable {
    /// The public half.
    var point: P256Point { get }

    /// Asks the hardware whether it still has the key, and in software whether its halves belong together.
    func verifyUsable() throws(DeviceKeyError)
}

package protocol DeviceSigningKeyHandle: DeviceKeyHandle {
    /// `r ‖ s`, 64 bytes: ECDSA on P-256 with SHA-256.
    func sign(_ message: [UInt8]) throws(DeviceKeyError) -> [UInt8]
}

package protocol DeviceAgreementKeyHandle: DeviceKeyHandle {
    /// The x coordinate of the product, 32 bytes. Source: NIST SP 800-56A §5.7.1.2.
    func sharedSecret(with point: P256Point) throws(DeviceKeyError) -> Secret
}

/// Why a device's key was not made or not used. The texts are for people and contain nothing of the key.
package enum DeviceKeyError: Error, Sendable, Equatable {
    /// The hardware is absent, closed to this process, busy or silent. Another attempt may succeed.
    case unavailable(String)
    /// The hardware answers, and the key is not its own any more: it was cleared or replaced, or the bytes
    /// were altered. No attempt will succeed.
    case lost(String)
    /// The other side's public key is no point on P-256.
    case badPoint
}

/// What this device has for device keys besides software.
package enum DeviceKeyHardware {
    /// The Secure Enclave; nil on a device without one, as on every Linux machine.
    package static var ofThisMachine: (any DeviceKeyBackEnd)? {
        #if canImport(Security)
            SecureEnclaveKeys.ofThisMachine
        #else
            nil
        #endif
    }

    /// Why none is used where none is given: for people.
    package static let absence = "this device has none that is open to this program"
}

extension DeviceKeyError {
    /// What the Secure Enclave's error means for the key.
    package init(_ failure: EnclaveError) {
        let text = "Secure Enclave: \(failure.domain) \(failure.code)"
        self =
            failure.isLossOfKey
            ? .lost("\(text): the key is another device's, or was altered") : .unavailable(text)
    }

    static func translating<Value>(
        _ body: () throws(EnclaveError) -> Value
    ) throws(DeviceKeyError) -> Value {
        do {
            return try body()
        } catch {
            throw DeviceKeyError(error)
        }
    }
}
