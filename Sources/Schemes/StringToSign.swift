import CountersignWire

/// What a scheme spells and a key authenticates. It never holds the secret: a scheme that hashes its secret with the
/// text says where it belongs instead, so that this can be shown to people as it is.
package struct StringToSign: ~Copyable, Sendable {
    package private(set) var bytes = ByteBuffer(capacity: 4096)
    /// Where ``MACAlgorithm/md5OverSecret`` puts the secret.
    package private(set) var secretOffset = 0

    package init() {}

    /// A text from elsewhere: what a signer may have spelled by mistake.
    package init(_ text: [UInt8], secretAt offset: Int) {
        bytes.append(text.span)
        secretOffset = offset
    }

    /// The buffer, emptied and moved out, so that it can be written while the rest of a workspace is read.
    mutating func takeBytes() -> ByteBuffer {
        var taken = ByteBuffer()
        swap(&taken, &bytes)
        taken.clear()
        return taken
    }

    mutating func put(back text: inout ByteBuffer, secretAt offset: Int) {
        swap(&text, &bytes)
        secretOffset = offset
    }

    /// The text as people may see it, with a mark where the secret goes.
    package var shown: String {
        guard secretOffset > 0 else { return bytes.text }
        let bytes = bytes.span
        return bytes.extracting(0..<secretOffset).text + "<secret>" + bytes.extracting(secretOffset..<bytes.count).text
    }
}
