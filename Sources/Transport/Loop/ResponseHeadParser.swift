/// Parses the head of a response that libcurl has received completely. Source: RFC 9112 §4, §5.
enum ResponseHeadParser {
    /// Nil if the status line or a field is malformed. A field's name keeps its case.
    static func parse(_ bytes: [UInt8]) -> ResponseChannel.Head? {
        var rest = bytes[...]
        guard let status = status(line(&rest)) else { return nil }
        var fields: [HeaderField] = []
        while !rest.isEmpty {
            let line = line(&rest)
            guard !line.isEmpty else { continue }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
                return nil
            }
            let name = String(decoding: line[..<colon], as: UTF8.self)
            fields.append(HeaderField(name, bytes: Array(trimmed(line[(colon + 1)...]))))
        }
        return ResponseChannel.Head(status: status, fields: fields)
    }

    /// Removes the first line and returns it without its line break.
    private static func line(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let end = rest.firstIndex(of: 0x0A) ?? rest.endIndex
        let line = rest[..<end]
        rest = rest[min(end + 1, rest.endIndex)...]
        return line.last == 0x0D ? line.dropLast() : line
    }

    /// `HTTP/1.1 200 OK`
    private static func status(_ line: ArraySlice<UInt8>) -> Int? {
        guard line.starts(with: "HTTP/1.".utf8) else { return nil }
        let words = line.split(separator: 0x20, maxSplits: 2)
        guard words.count >= 2, words[1].count == 3, words[1].allSatisfy({ (0x30...0x39).contains($0) })
        else {
            return nil
        }
        let status = words[1].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return (100...599).contains(status) ? status : nil
    }

    private static func trimmed(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var value = value.drop(while: isSpace)
        while let last = value.last, isSpace(last) { value.removeLast() }
        return value
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
