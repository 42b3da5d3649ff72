/// Reads the head of an answer that libcurl has found whole. Source: RFC 9112 §4, §5.
enum AnswerHead {
    /// Nil where its first line or a field is none. A field's name keeps its case.
    static func read(_ bytes: [UInt8]) -> AnswerChannel.Head? {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            line.last == 0x0D ? line.dropLast() : line
        }[...]
        guard let first = lines.popFirst(), first.starts(with: "HTTP/1.".utf8) else { return nil }
        let words = first.split(separator: 0x20, maxSplits: 2)
        guard words.count >= 2, words[1].count == 3, let status = Int(String(decoding: words[1], as: UTF8.self)),
            (100...599).contains(status)
        else { return nil }
        var fields: [HTTPField] = []
        for line in lines where !line.isEmpty {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return nil }
            let value = line[line.index(after: colon)...].drop(while: isSpace)
            let end = value.lastIndex { !isSpace($0) }.map { value.index(after: $0) } ?? value.startIndex
            fields.append(
                HTTPField(String(decoding: line[..<colon], as: UTF8.self), bytes: Array(value[value.startIndex..<end])))
        }
        return AnswerChannel.Head(status: status, fields: fields)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
