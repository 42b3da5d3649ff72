/// Where the private half of a device's key is kept. A client states it at login; nothing proves it.
package enum KeyStorage: String, Sendable, CaseIterable {
    /// In a vault item, and in the program's memory while it is used.
    case software
    /// In the Secure Enclave of an Apple device, which alone uses it.
    case secureEnclave = "secure-enclave"
    /// Wrapped by a TPM 2.0, which alone unwraps and uses it.
    case tpm

    /// Whether no program can read the private half.
    package var isHardware: Bool { self != .software }
}
