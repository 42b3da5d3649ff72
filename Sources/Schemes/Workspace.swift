import CountersignWire

/// Buffers that one request's verdict needs, reused for the next request so that a verdict allocates nothing.
///
/// A workspace belongs to one request from claim to verdict: a scheme's `claim` writes what its
/// `writeStringToSign` reads.
package struct Workspace: ~Copyable, Sendable {
    package var text = StringToSign()
    /// The signed parameters or members, decoded into `decoded`, in the scheme's order.
    var parameters: [FormParameter] = []
    var decoded = ByteBuffer(capacity: 4096)
    /// The app's settings, from its policy. The caller sets them before `writeStringToSign`.
    package var settings = SchemeSettings()
    /// A claim without another owner, which the next claim may reuse.
    package var spareClaim: Claim?
    private var parts: [SchemePart] = []
    /// The types of `parts`.
    private var partTypes: [ObjectIdentifier] = []

    package init() { parameters.reserveCapacity(64) }

    /// Overwrites the string to sign.
    package mutating func eraseText() { text.erase() }

    /// The part with buffers of that type, which a scheme defines for itself; made at its first use.
    mutating func part<Buffers: SchemeBuffers & ~Copyable>(_ type: Buffers.Type) -> SchemePartOf<Buffers> {
        if let part = existingPart(type) { return part }
        let part = SchemePartOf<Buffers>()
        parts.append(part)
        partTypes.append(ObjectIdentifier(SchemePartOf<Buffers>.self))
        return part
    }

    /// The same; nil if no request of its scheme has been read.
    func existingPart<Buffers: SchemeBuffers & ~Copyable>(_ type: Buffers.Type) -> SchemePartOf<Buffers>? {
        let type = ObjectIdentifier(SchemePartOf<Buffers>.self)
        // The types are equal, so that the cast cannot fail; `as?` would look them up at run time.
        for index in partTypes.indices where partTypes[index] == type {
            return unsafeDowncast(parts[index], to: SchemePartOf<Buffers>.self)
        }
        return nil
    }
}

/// What one scheme needs between claim and verdict besides the buffers of ``Workspace``.
protocol SchemeBuffers: ~Copyable, Sendable {
    init()
}

/// A scheme's buffers behind a reference, so that a workspace can hold those of all schemes.
class SchemePart: @unchecked Sendable {}

/// Used by one request at a time, like the workspace that holds it.
final class SchemePartOf<Buffers: SchemeBuffers & ~Copyable>: SchemePart, @unchecked Sendable {
    var buffers = Buffers()
}

/// Settings of an app for schemes that clients use in several variants.
package struct SchemeSettings: Sendable {
    /// For schemes that sign the URL: scheme and authority as clients write it, without a slash at the end;
    /// nil for those of the request.
    package var publicURL: [UInt8]?
    /// For form-md5: the position of the private key in the string to sign.
    package var formMD5Key = FormMD5.KeyPosition.pair

    package init(publicURL: [UInt8]? = nil, formMD5Key: FormMD5.KeyPosition = .pair) {
        self.publicURL = publicURL
        self.formMD5Key = formMD5Key
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

    mutating func erase() {
        bytes.erase()
        secretOffset = 0
    }

    /// The text for display, with a placeholder for the secret.
    package var displayText: String {
        guard secretOffset > 0 else { return bytes.text }
        let bytes = bytes.span
        return bytes.extracting(0..<secretOffset).text + "<secret>"
            + bytes.extracting(secretOffset..<bytes.count).text
    }
}
