/// The algorithm of a key. It is fixed with the key, and nothing in a message changes it. Names: the registry
/// of RFC 9421 §6.2.2.
package enum KeyAlgorithm: String, Sendable, CaseIterable {
    case hmacSHA256 = "hmac-sha256"
    case ed25519
    case ecdsaP256 = "ecdsa-p256-sha256"
    case ecdsaP384 = "ecdsa-p384-sha384"
    case rsaPSS = "rsa-pss-sha512"
    /// Only verified, if an app's policy allows it; never used to sign.
    case rsaV15 = "rsa-v1_5-sha256"

    /// The algorithm of that name; nil if the name is unknown.
    package init?(_ name: borrowing Span<UInt8>) {
        switch name.count {
        case 7 where name.matches("ed25519"): self = .ed25519
        case 11 where name.matches("hmac-sha256"): self = .hmacSHA256
        case 14 where name.matches("rsa-pss-sha512"): self = .rsaPSS
        case 15 where name.matches("rsa-v1_5-sha256"): self = .rsaV15
        case 17 where name.matches("ecdsa-p256-sha256"): self = .ecdsaP256
        case 17 where name.matches("ecdsa-p384-sha384"): self = .ecdsaP384
        default: return nil
        }
    }
}

extension Span<UInt8> {
    fileprivate func matches(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count where self[index] != text.utf8Start[index] { return false }
        return true
    }
}

/// The operation that a key is prepared for.
enum KeyPurpose { case verify, sign }

/// Where a device's private key is kept. A client states it at login, without proof.
package enum KeyStorage: String, Sendable, CaseIterable {
    /// In a vault item, and in the program's memory while it is used.
    case software
    /// In the Secure Enclave of an Apple device; only the Enclave uses it.
    case secureEnclave = "secure-enclave"
    /// Wrapped by a TPM 2.0. No client of this package uses one; ports may.
    case tpm
}

/// An error of the Secure Enclave as the system reports it: an `NSError`'s domain and code.
package struct EnclaveError: Error, Sendable, Equatable {
    package let domain: String
    package let code: Int

    package init(domain: String, code: Int) {
        self.domain = domain
        self.code = code
    }

    /// Whether the Enclave reports that the data representation is not one of its keys: another device's
    /// Enclave made it, or it was altered. Any other error, for instance of a device that is still locked,
    /// may be temporary.
    ///
    /// These are CryptoTokenKit's `corruptedData` (-3) and `objectNotFound` (-6), and the parameter errors of
    /// CryptoKit itself. Source: CryptoTokenKit/TKError.h.
    package var isLossOfKey: Bool {
        switch domain {
        case "CryptoTokenKit": code == -3 || code == -6
        case "CryptoKit.CryptoKitError": true
        default: false
        }
    }
}
