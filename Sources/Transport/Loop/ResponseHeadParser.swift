import CountersignWire

/// Parses the head of a response that libcurl has received completely. Source: RFC 9112 §4, §5.
enum ResponseHeadParser {
    /// Nil if the status line or a field is malformed. A field's name keeps its case.
    static func parse(_ bytes: [UInt8]) -> ResponseChannel.Head? {
        let text = bytes.span
        var next = 0
        guard let status = status(text.extracting(line(of: text, from: &next))) else { return nil }
        var fields: [HeaderField] = []
        fields.reserveCapacity(16)
        while next < text.count {
            let line = text.extracting(line(of: text, from: &next))
            guard !line.isEmpty else { continue }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":"), from: 0), colon > 0 else { return nil }
            let value = trimmed(line.extracting((colon + 1)...))
            fields.append(
                HeaderField(
                    line.extracting(..<colon).text, bytes: value.withUnsafeBufferPointer { Array($0) }))
        }
        return ResponseChannel.Head(status: status, fields: fields)
    }

    /// The line that begins at `next`, without its line break; moves `next` behind it.
    private static func line(of text: borrowing Span<UInt8>, from next: inout Int) -> Range<Int> {
        let start = next
        let end = text.firstIndex(of: 0x0A, from: start) ?? text.count
        next = min(end + 1, text.count)
        return start..<(end > start && text[end - 1] == 0x0D ? end - 1 : end)
    }

    /// `HTTP/1.1 200 OK`, with any number of spaces before the status, which has three digits.
    private static func status(_ line: borrowing Span<UInt8>) -> Int? {
        guard line.count >= 7, line.extracting(0..<7).matches("HTTP/1.") else { return nil }
        var start = line.firstIndex(of: 0x20, from: 7) ?? line.count
        while start < line.count, line[start] == 0x20 { start += 1 }
        let end = line.firstIndex(of: 0x20, from: start) ?? line.count
        guard end - start == 3 else { return nil }
        var status = 0
        for index in start..<end {
            guard (0x30...0x39).contains(line[index]) else { return nil }
            status = status * 10 + Int(line[index] - 0x30)
        }
        return (100...599).contains(status) ? status : nil
    }

    @_lifetime(copy value)
    private static func trimmed(_ value: Span<UInt8>) -> Span<UInt8> {
        var (start, end) = (0, value.count)
        while start < end, isSpace(value[start]) { start += 1 }
        while end > start, isSpace(value[end - 1]) { end -= 1 }
        return value.extracting(start..<end)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
