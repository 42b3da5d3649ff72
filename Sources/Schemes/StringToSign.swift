/// What a scheme spells and a key authenticates. It never holds the secret: a scheme that hashes its secret with the
/// text says where it belongs instead, so that this can be shown to people as it is.
package struct StringToSign: Sendable {
    package var bytes: [UInt8] = []
    /// Where ``MACAlgorithm/md5OverSecret`` puts the secret.
    package var secretOffset = 0

    package init() { bytes.reserveCapacity(4096) }

    mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        secretOffset = 0
    }
}
