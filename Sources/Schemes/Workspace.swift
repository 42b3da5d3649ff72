import CountersignWire

/// Buffers that one request's verdict needs, reused for the next request so that a verdict allocates nothing.
///
/// A workspace belongs to one request from claim to verdict: a scheme's `claim` writes what its
/// `writeStringToSign` reads.
package struct Workspace: ~Copyable, Sendable {
    package var text = StringToSign()
    /// message-signatures: the signature that was chosen, and what it names.
    var signature = SignatureInput()
    var components: [Component] = []
    /// form-md5, auth-v1, auth-v2: the parameters, decoded into `decoded`, sorted by name. auth-v4: the
    /// body's members, their values as they are signed.
    var parameters: [FormParameter] = []
    var decoded = ByteBuffer(capacity: 4096)
    var sigV4 = SigV4Workspace()
    /// auth-v4: scheme and authority of the URL as clients write it, without a slash at the end; nil for
    /// those of the request. The caller sets it from the app's policy before `writeStringToSign`.
    package var publicURL: [UInt8]?
    /// form-md5: the position of the private key in the string to sign. Set in the same way.
    package var formMD5Key = FormMD5.KeyPosition.pair

    /// sigv4: the canonical request, whose digest the string to sign ends in.
    package var canonicalRequest: String { sigV4.canonical.text }

    package init() {
        components.reserveCapacity(64)
        parameters.reserveCapacity(64)
    }
}

/// The text that a scheme writes and a key authenticates. It never contains the secret: a scheme that hashes
/// its secret with the text records the secret's position, so that the text can be displayed safely.
package struct StringToSign: ~Copyable, Sendable {
    package private(set) var bytes = ByteBuffer(capacity: 4096)
    /// Where ``MACAlgorithm/md5OverSecret`` puts the secret.
    package private(set) var secretOffset = 0

    package init() {}

    /// A text that did not come from a scheme: what a signer may have signed by mistake.
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

    /// The text for display, with a placeholder for the secret.
    package var displayText: String {
        guard secretOffset > 0 else { return bytes.text }
        let bytes = bytes.span
        return bytes.extracting(0..<secretOffset).text + "<secret>"
            + bytes.extracting(secretOffset..<bytes.count).text
    }
}
