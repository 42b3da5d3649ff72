import CountersignWire

/// A parameter of the query as a spelling has it: by its places in ``SigV4Buffers/escaped``.
struct SortedParameter: BitwiseCopyable {
    var name: ByteRange
    var value: ByteRange
    /// The name's first eight bytes, as ``FormParameter/prefix(of:)`` has them: most names differ in these.
    var prefix: UInt64
}

extension SigV4Buffers {
    private static let mostParameters = 256

    enum Escapes { case anew, kept }

    /// The parameters in the order of their names, then values; of a presigned URL all but the signature
    /// itself.
    mutating func writeSortedQuery(of request: Request, escapes: Escapes) throws(Refusal) {
        guard let query = request.query, !query.isEmpty else { return }
        try collectParameters(of: request.head.span.extracting(query.range), escapes: escapes)
        if !isInOrder {
            if escapes == .anew { facts.isInOrder = false }
            // Moved out and back, since the comparison reads the rest of this.
            var sorted: [SortedParameter] = []
            swap(&sorted, &parameters)
            sorted.sort { isOrdered($0, before: $1) }
            swap(&sorted, &parameters)
        }
        for (index, parameter) in parameters.enumerated() {
            if index > 0 { canonical.append(UInt8(ascii: "&")) }
            canonical.append(parameter.name, of: escaped)
            canonical.append(UInt8(ascii: "="))
            canonical.append(parameter.value, of: escaped)
        }
    }

    private var isInOrder: Bool {
        for index in parameters.indices.dropFirst()
        where isOrdered(parameters[index], before: parameters[index - 1]) {
            return false
        }
        return true
    }

    mutating func writeQueryAsWritten(_ request: Request) {
        if let query = request.query { canonical.append(request.head.span.extracting(query.range)) }
    }

    private mutating func collectParameters(of text: Span<UInt8>, escapes: Escapes) throws(Refusal) {
        parameters.removeAll(keepingCapacity: true)
        escaped.clear()
        var reader = Form.Reader()
        do throws(ParseError) {
            while let pair = try reader.next(in: text) {
                let name = text.extracting(pair.name.range)
                if authorization.form == .query, name.matches("X-Amz-Signature") { continue }
                guard parameters.count < SigV4Buffers.mostParameters else {
                    throw ParseError(
                        offset: Int(pair.name.start),
                        reason: "expected at most \(SigV4Buffers.mostParameters) parameters")
                }
                if pair.value.start == pair.name.end { facts.hasBareNames = true }
                let first = escaped.count
                let middle = try append(name, place: pair.name, escapes: escapes)
                let last = try append(text.extracting(pair.value.range), place: pair.value, escapes: escapes)
                let prefix = FormParameter.prefix(of: escaped.span.extracting(first..<middle))
                parameters.append(
                    SortedParameter(
                        name: ByteRange(from: first, to: middle), value: ByteRange(from: middle, to: last),
                        prefix: prefix))
            }
        } catch {
            throw Refusal(.malformed, detail: "query: \(error)")
        }
    }

    /// Appends a name or a value, and returns where it ends. Escaped anew: unreserved characters stand for
    /// themselves, all others are upper-case escapes; `+` stays what it is, for its two readings differ.
    private mutating func append(
        _ text: Span<UInt8>, place: ByteRange, escapes: Escapes
    ) throws(ParseError) -> Int {
        guard escapes == .anew else {
            escaped.append(text)
            return escaped.count
        }
        let first = escaped.count
        var index = 0
        while index < text.count {
            let end = PercentEncoding.endOfUnreserved(in: text, from: index)
            escaped.append(text.extracting(index..<end))
            guard end < text.count else { break }
            index = end
            let byte = text[index]
            if byte == UInt8(ascii: "+") {
                escaped.append(byte)
                index += 1
            } else if byte == UInt8(ascii: "%") {
                guard let value = PercentEncoding.byte(in: text, at: index + 1), value != 0 else {
                    throw ParseError(
                        offset: Int(place.start) + index,
                        reason: "expected two hexadecimal digits after \"%\", and no NUL")
                }
                if PercentEncoding.isUnreserved(value) {
                    escaped.append(value)
                } else {
                    PercentEncoding.escape(value, into: &escaped)
                }
                index += 3
            } else {
                PercentEncoding.escape(byte, into: &escaped)
                index += 1
            }
        }
        if !escaped.span.extracting(first..<escaped.count).matches(text) { facts.isEscapedAsStandard = false }
        return escaped.count
    }

    private func isOrdered(_ left: SortedParameter, before right: SortedParameter) -> Bool {
        if left.prefix != right.prefix { return left.prefix < right.prefix }
        let text = escaped.span
        let (name, other) = (text.extracting(left.name.range), text.extracting(right.name.range))
        if !name.matches(other) { return name.isBefore(other) }
        return text.extracting(left.value.range).isBefore(text.extracting(right.value.range))
    }
}
