// Structured fields, forms and JSON: offsets stay inside the text, and written values parse to the same
// values.
import CountersignWire

@Sendable func fuzzStructuredField(_ bytes: Span<UInt8>) {
    let isDictionary = (try? StructuredField.checkDictionary(bytes)) != nil
    var reader = StructuredField(bytes)
    var members = 0
    do {
        while let key = try reader.nextMember() {
            precondition(!key.isEmpty && key.range.upperBound <= bytes.count)
            members += 1
            try readMember(&reader, within: bytes.count)
        }
    } catch {
        precondition(!isDictionary && (0...bytes.count).contains(error.offset))
        return
    }
    precondition(isDictionary && reader.isAtEnd && members <= bytes.count)
}

private func readMember(_ reader: inout StructuredField, within count: Int) throws(ParseError) {
    if reader.takeEquals() {
        if reader.openList() {
            var first = true
            while try reader.nextInList(first: &first) {
                check(try reader.bareItem(), within: count)
                try reader.skipParameters()
            }
        } else {
            check(try reader.bareItem(), within: count)
        }
    }
    while let key = try reader.nextParameter() {
        precondition(!key.isEmpty)
        check(try reader.parameterValue(), within: count)
    }
}

private func check(_ item: StructuredField.BareItem, within count: Int) {
    switch item {
    case .decimal(let slice), .string(let slice), .token(let slice), .bytes(let slice),
        .displayString(let slice):
        precondition(slice.start <= slice.end && slice.range.upperBound <= count)
    case .integer(let value), .date(let value):
        precondition(abs(value) <= 999_999_999_999_999)
    case .boolean: break
    }
}

private func decoded(
    _ slice: ByteRange, _ encoding: Form.Encoding, _ bytes: Span<UInt8>
) throws(ParseError) -> [UInt8] {
    var buffer = ByteBuffer()
    _ = try Form.decode(slice, of: bytes, into: &buffer)
    let written = bytes.extracting(slice.range).withUnsafeBufferPointer { Array($0) }
    precondition(encoding == .escaped || buffer.array == written)
    return buffer.array
}

@Sendable func fuzzForm(_ bytes: Span<UInt8>) {
    var reader = Form.Reader()
    var pairs: [(name: String, value: [UInt8])] = []
    var written: [UInt8] = []
    do {
        while let pair = try reader.next(in: bytes) {
            precondition(!pair.name.isEmpty && pair.value.range.upperBound <= bytes.count)
            let name = try decoded(pair.name, pair.encoding, bytes)
            let value = try decoded(pair.value, pair.encoding, bytes)
            precondition(!name.contains(0) && !value.contains(0))
            // Names that are not UTF-8 cannot be written through a String; only the parser is tested with
            // those.
            guard let text = String(validating: name, as: UTF8.self) else { return }
            pairs.append((text, value))
            Form.append(text, value: value.span, to: &written)
        }
    } catch {
        precondition((0...bytes.count + 1).contains(error.offset))
        return
    }
    var again = Form.Reader()
    for pair in pairs {
        guard let read = try? again.next(in: written.span) else { preconditionFailure("a pair was lost") }
        guard let name = try? decoded(read.name, read.encoding, written.span),
            let value = try? decoded(read.value, read.encoding, written.span)
        else { preconditionFailure("what was written cannot be read") }
        precondition(name == Array(pair.name.utf8) && value == pair.value)
    }
}

@Sendable func fuzzJSON(_ bytes: Span<UInt8>) {
    let text = bytes.withUnsafeBufferPointer { Array($0) }
    for dialect in [JSONReader.Dialect.strict, .comments] {
        do {
            let document = try JSONReader.read(text, dialect: dialect)
            precondition(document.root.raw.range.upperBound <= text.count && !document.root.raw.isEmpty)
            _ = document.integer(document.root, in: Int.min...Int.max)
            // The value alone is a JSON text, and the strict dialect accepts a subset.
            let value = Array(document.bytes(of: document.root))
            guard (try? JSONReader.read(value, dialect: dialect)) != nil else {
                preconditionFailure("read once only")
            }
            if dialect == .strict, (try? JSONReader.read(text, dialect: .comments)) == nil {
                preconditionFailure("strict, but not with comments allowed")
            }
        } catch {
            precondition((0...text.count).contains(error.offset))
        }
    }
}

/// Languages are bounded in number, unique and in canonical form, and a look-up ends.
@Sendable func fuzzLanguages(_ bytes: Span<UInt8>) {
    let accepted = AcceptedLanguages(bytes)
    precondition(accepted.tags.count <= 16)
    for tag in accepted.tags { precondition(LanguageTag(tag.description) == tag) }
    var asked = 0
    _ = accepted.find { _ -> Bool? in
        asked += 1
        return nil
    }
    precondition(asked <= 16 * LanguageTag.longest + 1)
}
