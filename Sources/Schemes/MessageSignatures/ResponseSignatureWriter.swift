import CountersignSeal
import CountersignWire

extension MessageSignatures {
    /// The fields that sign a response: `Content-Digest`, `Signature-Input` and `Signature`. The signature
    /// also covers the response's `fields`. `at` is in whole Unix seconds. Nil if the request bears no
    /// signature to which the response could be bound.
    package func sign(
        status: Int, body: [UInt8], alsoCovering fields: [Draft.Field] = [], answering request: Request,
        as credentials: Credentials, at: Int64
    ) throws(Refusal) -> [Draft.Field]? {
        guard MessageSignatures.canBindResponse(to: request) else { return nil }
        return try ResponseSignatureWriter(status: status, covered: fields, request: request, at: at)
            .fields(signing: body, as: credentials)
    }

    /// The same for a response that is bound by its content, for any request.
    package func sign(
        status: Int, body: [UInt8], alsoCovering fields: [Draft.Field] = [], as credentials: Credentials,
        at: Int64
    ) throws(Refusal) -> [Draft.Field]? {
        try ResponseSignatureWriter(status: status, covered: fields, request: nil, at: at)
            .fields(signing: body, as: credentials)
    }

    /// Appends the lines of the fields that sign a response to `lines`; nothing if the request bears no
    /// signature. The body is the first `length` bytes of `body`. `base` is overwritten.
    package func appendSignature(
        of status: Int, body: borrowing ByteBuffer, ofLength length: Int, alsoCovering fields: [Draft.Field],
        answering request: Request, as credentials: Credentials, at: Int64,
        writing base: inout StringToSign, to lines: inout ByteBuffer
    ) throws(Refusal) {
        guard MessageSignatures.canBindResponse(to: request) else { return }
        _ = try ResponseSignatureWriter(status: status, covered: fields, request: request, at: at)
            .append(
                to: &lines, signing: body.span.extracting(0..<length), as: credentials, base: &base)
    }

    private static func canBindResponse(to request: Request) -> Bool {
        request.names.contains(.signature) && request.names.contains(.signatureInput)
    }
}

/// Writes the fields that sign a response, and the signature base that they stand for, each once. Source:
/// RFC 9421 §2.4, §2.5; docs/protocol.md, "Answers".
private struct ResponseSignatureWriter {
    let status: Int
    /// The response's fields that are covered besides `Content-Digest`.
    let covered: [Draft.Field]
    /// The request that the response is bound to; nil for one that is bound by its content.
    let request: Request?
    /// Whole Unix seconds.
    let at: Int64

    /// Where the values of the fields are.
    struct Values {
        var digest: Range<Int>
        var input: Range<Int>
        var signature: Range<Int>
    }

    func fields(signing body: [UInt8], as credentials: Credentials) throws(Refusal) -> [Draft.Field] {
        var lines = ByteBuffer(capacity: 512)
        var base = StringToSign()
        let values = try append(to: &lines, signing: body.span, as: credentials, base: &base)
        let bytes = lines.array
        return [
            Draft.Field(name: "Content-Digest", bytes: Array(bytes[values.digest])),
            Draft.Field(name: "Signature-Input", bytes: Array(bytes[values.input])),
            Draft.Field(name: "Signature", bytes: Array(bytes[values.signature])),
        ]
    }

    /// Appends the field lines. `lines` is as it was if the key does not sign.
    func append(
        to lines: inout ByteBuffer, signing body: borrowing Span<UInt8>, as credentials: Credentials,
        base: inout StringToSign
    ) throws(Refusal) -> Values {
        let start = lines.count
        try checkNames()
        lines.append("Content-Digest: ")
        let digestStart = lines.count
        let digest = SHA256.digest(body)
        lines.append("sha-256=:")
        Base64.encode(digest.span, as: .standard, into: &lines)
        lines.append(":")
        let digestEnd = lines.count
        lines.append("\r\nSignature-Input: ")
        let inputStart = lines.count
        lines.append("answer=")
        let parametersStart = lines.count
        appendParameters(to: &lines, credentials: credentials)
        let inputEnd = lines.count
        writeBase(
            digest: lines.span.extracting(digestStart..<digestEnd),
            parameters: lines.span.extracting(parametersStart..<inputEnd), into: &base)
        let signature: [UInt8]
        do {
            signature = try credentials.key.sign(base)
        } catch {
            lines.cut(to: start)
            throw error
        }
        lines.append("\r\nSignature: ")
        let signatureStart = lines.count
        lines.append("answer=:")
        Base64.encode(signature.span, as: .standard, into: &lines)
        lines.append(":")
        let signatureEnd = lines.count
        lines.append("\r\n")
        return Values(
            digest: digestStart..<digestEnd, input: inputStart..<inputEnd,
            signature: signatureStart..<signatureEnd)
    }

    /// Each component comes once. Source: RFC 9421 §2.
    private func checkNames() throws(Refusal) {
        for index in covered.indices.dropFirst()
        where covered[..<index].contains(where: { $0.isNamed(covered[index].name) }) {
            throw Refusal(.malformed, detail: "Signature-Input: a component twice")
        }
    }

    /// The covered components and the parameters: the value of `@signature-params`.
    private func appendParameters(to text: inout ByteBuffer, credentials: Credentials) {
        text.append("(\"@status\" \"content-digest\"")
        for field in covered {
            text.append(" \"")
            text.append(lowercasing: field.name)
            text.append("\"")
        }
        if request != nil {
            text.append(
                " \"@method\";req \"@path\";req \"@query\";req \"signature\";req \"signature-input\";req")
        }
        text.append(");created=")
        text.append(decimal: at)
        text.append(";keyid=\"")
        text.append(credentials.keyID.quotable)
        text.append("\";alg=\"")
        text.append(credentials.key.algorithm.rawValue)
        text.append("\";tag=\"countersign\"")
    }

    private func writeBase(
        digest: borrowing Span<UInt8>, parameters: borrowing Span<UInt8>, into base: inout StringToSign
    ) {
        var text = base.takeBytes()
        text.append("\"@status\": ")
        text.append(decimal: Int64(status))
        text.append("\n\"content-digest\": ")
        text.append(digest)
        for field in covered {
            text.append("\n\"")
            text.append(lowercasing: field.name)
            text.append("\": ")
            text.append(field.value.span)
        }
        if let request {
            text.append("\n\"@method\";req: ")
            SignatureBase.appendDerived(.method, of: request, to: &text)
            text.append("\n\"@path\";req: ")
            SignatureBase.appendDerived(.path, of: request, to: &text)
            text.append("\n\"@query\";req: ")
            SignatureBase.appendDerived(.query, of: request, to: &text)
            text.append("\n\"signature\";req: ")
            ResponseSignatureWriter.append(.signature, of: request, to: &text)
            text.append("\n\"signature-input\";req: ")
            ResponseSignatureWriter.append(.signatureInput, of: request, to: &text)
        }
        text.append("\n\"@signature-params\": ")
        text.append(parameters)
        base.put(back: &text, secretAt: 0)
    }

    /// The lines of a field, joined by a comma and a space. Source: RFC 9421 §2.1.
    private static func append(_ name: FieldName, of request: Request, to text: inout ByteBuffer) {
        var isFirst = true
        for field in request.fields where field.known == name {
            if !isFirst { text.append(", ") }
            isFirst = false
            text.append(request.head.span.extracting(field.value.range))
        }
    }
}
