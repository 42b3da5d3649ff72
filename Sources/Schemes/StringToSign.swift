/// What a scheme spells and a key authenticates. It never holds the secret: a scheme that hashes its secret with the
/// text says where it belongs instead, so that this can be shown to people as it is.
package struct StringToSign: Sendable {
    package internal(set) var bytes: [UInt8] = []
    /// Where ``MACAlgorithm/md5OverSecret`` puts the secret.
    package internal(set) var secretOffset = 0

    package init() { bytes.reserveCapacity(4096) }

    /// The buffer, emptied and moved out, so that it is written without being copied. It is to be put back.
    mutating func cleared() -> [UInt8] {
        var buffer: [UInt8] = []
        swap(&buffer, &bytes)
        buffer.removeAll(keepingCapacity: true)
        secretOffset = 0
        return buffer
    }
}
