import CountersignSeal
import CountersignWire

/// Signs what most requests are without reading the list of components back: each field has a name of
/// letters, digits and hyphens, which comes once, so that its line of the signature base follows from the
/// field itself. Source: RFC 9421 §2.1, §2.5.
///
/// A request that is anything else is read back, as a receiver reads it, and refused if it does not parse
/// (``MessageSignatures/sign(_:as:at:nonce:workspace:)``). Both write the same bytes.
extension MessageSignatures {
    /// Adds `Signature-Input` and `Signature`; false, and nothing added, if the request has to be read
    /// back. `draft` has all other fields.
    func signDirectly(
        _ draft: inout Draft, as credentials: Credentials, at time: Int64, nonce: String,
        workspace: inout Workspace
    ) throws(Refusal) -> Bool {
        guard additional.isEmpty, draft.fields.count <= MessageSignatures.mostDirectFields,
            credentials.keyID.needsNoEscape, MessageSignatures.isPlain(nonce)
        else { return false }
        let part = workspace.part(DirectSignatureBuffers.self)
        part.buffers.input.clear()
        var text = workspace.text.takeBytes()
        let isDirect = MessageSignatures.writeDirectly(
            draft, as: credentials, at: time, nonce: nonce, base: &text, input: &part.buffers.input)
        workspace.text.put(back: &text, secretAt: 0)
        guard isDirect else { return false }
        var signature = ByteBuffer(capacity: 128)
        signature.append("app=:")
        if credentials.key.isOfKeyPair {
            let bytes = try credentials.key.sign(workspace.text)
            Base64.encode(bytes.span, as: .standard, into: &signature)
        } else {
            let mac = credentials.key.mac(.ofKey, of: workspace.text)
            Base64.encode(mac.span, as: .standard, into: &signature)
        }
        signature.append(UInt8(ascii: ":"))
        draft.fields.append(Draft.Field(name: "Signature-Input", bytes: part.buffers.input.array))
        draft.fields.append(Draft.Field(name: "Signature", bytes: signature.array))
        return true
    }

    /// Fewer than a signature's most components. Each is compared with those before it.
    private static let mostDirectFields = 32

    /// Letters and digits of base64url, at least one.
    private static func isPlain(_ nonce: String) -> Bool {
        !nonce.isEmpty
            && nonce.utf8.allSatisfy { byte in
                ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: "_")
            }
    }

    /// Writes the signature base and the value of `Signature-Input`; false if they do not follow directly.
    private static func writeDirectly(
        _ draft: Draft, as credentials: Credentials, at time: Int64, nonce: String,
        base: inout ByteBuffer, input: inout ByteBuffer
    ) -> Bool {
        base.append("\"@method\": ")
        base.append(draft.method)
        base.append("\n\"@authority\": ")
        appendAuthority(of: draft, to: &base)
        let target = draft.target.span
        let mark = target.firstIndex(of: UInt8(ascii: "?"), from: 0)
        base.append("\n\"@path\": ")
        if target.isEmpty || mark == 0 { base.append(UInt8(ascii: "/")) }
        base.append(target.extracting(0..<(mark ?? target.count)))
        base.append("\n\"@query\": ?")
        if let mark { base.append(target.extracting((mark + 1)...)) }
        input.append("app=(\"@method\" \"@authority\" \"@path\" \"@query\"")
        for index in draft.fields.indices {
            guard appendField(at: index, of: draft, base: &base, input: &input) else { return false }
        }
        input.append(");created=")
        input.append(decimal: time)
        input.append(";nonce=\"")
        input.append(nonce)
        input.append("\";keyid=\"")
        input.append(credentials.keyID.bytes)
        input.append("\";alg=\"")
        input.append(credentials.key.algorithm.rawValue)
        input.append("\";tag=\"countersign\"")
        base.append("\n\"@signature-params\": ")
        // Without the label.
        base.append(input.span.extracting(4...))
        return true
    }

    private static func appendAuthority(of draft: Draft, to base: inout ByteBuffer) {
        let start = base.count
        base.append(lowercasing: draft.authority)
        let length = URIAuthority.normalised(
            base.span.extracting(start...), without: draft.transport.defaultPortSuffix
        ).count
        base.cut(to: start + length)
    }

    /// False if the field's line does not follow directly. A field that the signature leaves out has no
    /// line.
    private static func appendField(
        at index: Int, of draft: Draft, base: inout ByteBuffer, input: inout ByteBuffer
    ) -> Bool {
        let field = draft.fields[index]
        for earlier in draft.fields[..<index] where earlier.isNamed(field.name) { return false }
        let baseEnd = base.count
        base.append("\n\"")
        base.append(lowercasing: field.name)
        let name = (baseEnd + 2)..<base.count
        guard isDirect(base.span.extracting(name), of: draft) else { return false }
        if isLeftOut(base.span.extracting(name)) {
            base.cut(to: baseEnd)
            return true
        }
        input.append(" \"")
        input.append(base.span.extracting(name))
        input.append(UInt8(ascii: "\""))
        base.append("\": ")
        base.append(field.value.span)
        return true
    }

    /// Whether a field of that lower-case name is covered as it is. The app's own digest of a body that it
    /// has not is read back, and so are the fields of an earlier signature, which a new one replaces.
    private static func isDirect(_ name: borrowing Span<UInt8>, of draft: Draft) -> Bool {
        guard !name.isEmpty else { return false }
        for index in 0..<name.count {
            let byte = name[index]
            guard (byte >= 0x61 && byte <= 0x7A) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") else {
                return false
            }
        }
        if name.matches("signature") || name.matches("signature-input") { return false }
        return !name.matches("content-digest") || draft.streamed != nil || !draft.body.isEmpty
    }
}

/// The value of `Signature-Input` while it is written.
struct DirectSignatureBuffers: ~Copyable, SchemeBuffers {
    var input = ByteBuffer(capacity: 512)
}

extension KeyID {
    /// Whether it is written between quotes as it is.
    fileprivate var needsNoEscape: Bool {
        bytes.firstIndex(of: UInt8(ascii: "\\"), from: 0) == nil
            && bytes.firstIndex(of: UInt8(ascii: "\""), from: 0) == nil
    }
}
