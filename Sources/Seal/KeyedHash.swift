import CountersignSodium

/// A keyed 128-bit hash of short input: SipHash-2-4-128. Who does not know the key cannot make two inputs meet, so it
/// can stand for its input in a table. Not a MAC for messages.
package struct KeyedHash: Sendable {
    package typealias Key = Bytes16

    private let key: Key

    package init(key: Key) { self.key = key }

    package func hash(_ input: borrowing Span<UInt8>) -> (low: UInt64, high: UInt64) {
        var output: (low: UInt64, high: UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &output) { output in
            key.span.withUnsafeBytes { key in
                input.withUnsafeBytes { input in
                    // libsodium wants an address even for no bytes at all; any will do.
                    guard let target = output.baseAddress, let key = key.baseAddress else { return }
                    let source = input.baseAddress ?? key
                    _ = crypto_shorthash_siphashx24(target, source, UInt64(input.count), key)
                }
            }
        }
        return output
    }
}
