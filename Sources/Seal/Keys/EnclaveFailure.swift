/// An error of the Secure Enclave as the system reports it: an `NSError`'s domain and code.
package struct EnclaveFailure: Error, Sendable, Equatable {
    package let domain: String
    package let code: Int

    package init(domain: String, code: Int) {
        self.domain = domain
        self.code = code
    }

    /// Whether the Enclave says that the data representation is not one of its keys: it was made by another
    /// device's, or altered. Any other error, of a device that is still locked for instance, may pass.
    ///
    /// CryptoTokenKit's `corruptedData` (-3) and `objectNotFound` (-6), and the parameter errors of CryptoKit
    /// itself. Source: CryptoTokenKit/TKError.h.
    package var isLossOfKey: Bool {
        switch domain {
        case "CryptoTokenKit": code == -3 || code == -6
        case "CryptoKit.CryptoKitError": true
        default: false
        }
    }
}
