import CountersignWire

/// Form parameters decoded and sorted, as the schemes that sign them do.
enum FormParameters {
    static let most = 256

    /// Finds names and values as they are written, by their places in `text`.
    static func scan(_ text: Span<UInt8>, into parameters: inout [FormParameter]) throws(Refusal) {
        parameters.removeAll(keepingCapacity: true)
        var reader = Form.Reader()
        do throws(ParseError) {
            while let pair = try reader.next(in: text) {
                guard parameters.count < most else {
                    throw ParseError(
                        offset: Int(pair.name.start), reason: "expected at most \(most) parameters")
                }
                parameters.append(FormParameter(name: pair.name, value: pair.value, encoding: pair.encoding))
            }
        } catch {
            throw refusal(error)
        }
    }

    static func refusal(_ problem: ParseError) -> Refusal {
        Refusal(.malformed, detail: "form parameters: \(problem)")
    }

    /// Decodes what a scan of the same text found.
    static func decode(_ text: Span<UInt8>, into workspace: inout Workspace) throws(Refusal) {
        workspace.decoded.clear()
        workspace.decoded.append(text)
        do throws(ParseError) {
            for index in workspace.parameters.indices {
                var parameter = workspace.parameters[index]
                try parameter.decode(text, into: &workspace.decoded)
                workspace.parameters[index] = parameter
            }
        } catch {
            throw refusal(error)
        }
    }

    /// Sorts the decoded parameters and refuses a repeated name; `place` names the form in the refusal.
    static func sortUnique(_ workspace: inout Workspace, of place: StaticString) throws(Refusal) {
        sort(&workspace)
        for index in workspace.parameters.indices.dropFirst() {
            let (before, this) = (workspace.parameters[index - 1], workspace.parameters[index])
            guard before.prefix == this.prefix else { continue }
            let name = workspace.decoded.span.extracting(this.name.range)
            if name.matches(workspace.decoded.span.extracting(before.name.range)) {
                throw Refusal(.malformed, detail: "\(place): \(name.text) twice")
            }
        }
    }

    /// Sorts the parameters by the bytes of their names; parameters of one name keep their order. The number
    /// of comparisons stays small even for 256 names of kilobytes with a common beginning, which an
    /// unauthenticated caller can send.
    static func sort(_ workspace: inout Workspace) {
        // Moved out and back, since the comparison reads the rest of the workspace.
        var sorted: [FormParameter] = []
        swap(&sorted, &workspace.parameters)
        sorted.sort { isOrdered($0, before: $1, in: workspace.decoded.span) }
        swap(&sorted, &workspace.parameters)
    }

    private static func isOrdered(
        _ left: FormParameter, before right: FormParameter, in text: borrowing Span<UInt8>
    ) -> Bool {
        if left.prefix != right.prefix { return left.prefix < right.prefix }
        return text.extracting(left.name.range).isBefore(text.extracting(right.name.range))
    }
}

/// A form parameter: by its place in the form, and once decoded by its place in `Workspace.decoded`.
struct FormParameter: BitwiseCopyable {
    var name: ByteRange
    var value: ByteRange
    /// The name in full where `name` is only what it is sorted by: without `[]`, in lower case.
    var written = ByteRange.empty
    let encoding: Form.Encoding
    /// The decoded name's first eight bytes, big-endian, zeros after its end: names mostly differ in these,
    /// and compare as bytes do.
    var prefix: UInt64 = 0

    init(name: ByteRange, value: ByteRange, encoding: Form.Encoding) {
        self.name = name
        self.value = value
        self.encoding = encoding
    }

    /// `decoded` begins with a copy of `text`. A parameter without escapes refers to that copy; a parameter
    /// with escapes is decoded after it.
    mutating func decode(_ text: Span<UInt8>, into decoded: inout ByteBuffer) throws(ParseError) {
        if encoding == .escaped {
            name = try Form.decode(name, of: text, into: &decoded)
            value = try Form.decode(value, of: text, into: &decoded)
        }
        prefix = FormParameter.prefix(of: decoded.span.extracting(name.range))
    }

    static func prefix(of name: borrowing Span<UInt8>) -> UInt64 {
        if name.count >= 8 {
            return name.bytes.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self).bigEndian
        }
        var prefix: UInt64 = 0
        for index in 0..<name.count { prefix = prefix << 8 | UInt64(name[index]) }
        return prefix << UInt64(8 * (8 - name.count))
    }
}

extension Draft {
    /// Where form parameters are added.
    enum ParameterLocation: Sendable {
        case query, body
        case multipart(Multipart.Boundary)
    }

    /// Adds `parameters`, which are written as that place has them, behind those that are there; in a
    /// multipart body before them.
    mutating func attach(_ parameters: [UInt8], to place: ParameterLocation) {
        switch place {
        case .query:
            let mark = target.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?")
            let isOpen = target.last == UInt8(ascii: "?") || target.last == UInt8(ascii: "&")
            target += (isOpen ? [] : [mark]) + parameters
        case .multipart: body = parameters + body
        case .body:
            body += (body.isEmpty ? [] : [UInt8(ascii: "&")]) + parameters
            if !fields.contains(where: { $0.name.lowercased() == "content-type" }) {
                setField("Content-Type", to: "application/x-www-form-urlencoded")
            }
        }
    }
}

/// Parameters that a signer adds, written as their place has them.
struct AddedParameters {
    private(set) var text: [UInt8] = []
    private let place: Draft.ParameterLocation

    init(_ place: Draft.ParameterLocation) { self.place = place }

    mutating func append(_ name: String, value: borrowing Span<UInt8>) {
        guard case .multipart(let boundary) = place else { return Form.append(name, value: value, to: &text) }
        text += boundary.delimiter
        text += Array("\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n".utf8)
        value.withUnsafeBufferPointer { text.append(contentsOf: $0) }
        text += [0x0D, 0x0A]
    }

    /// With `sign` behind them.
    func signed(_ sign: String) -> [UInt8] {
        var signed = self
        signed.append("sign", value: Array(sign.utf8).span)
        return signed.text
    }
}
