import CountersignWire

/// The fields of one line of comma-separated values. Source: RFC 4180, without its line breaks inside quotes: no name
/// or hash has one, and without them a stray quote spoils one line instead of the rest of the file.
enum CSVLine {
    /// `line` has no line break.
    static func fields(_ line: [UInt8], atMost most: Int) throws(Malformed) -> [[UInt8]] {
        var fields: [[UInt8]] = []
        var position = 0
        while true {
            guard fields.count < most else { throw Malformed(reason: "more than \(most) fields") }
            fields.append(try field(line, &position))
            guard position < line.count else { return fields }
            // `field` stops at a comma or at the end.
            position += 1
        }
    }

    private static let quote = UInt8(ascii: "\"")
    private static let comma = UInt8(ascii: ",")

    private static func field(_ line: [UInt8], _ position: inout Int) throws(Malformed) -> [UInt8] {
        if position < line.count, line[position] == quote { return try quoted(line, &position) }
        let start = position
        while position < line.count, line[position] != comma {
            guard line[position] != quote else {
                throw Malformed(reason: "a quote inside a field that has none around it, at byte \(position + 1)")
            }
            position += 1
        }
        return Array(line[start..<position])
    }

    /// Between quotes, where a quote itself is written twice.
    private static func quoted(_ line: [UInt8], _ position: inout Int) throws(Malformed) -> [UInt8] {
        let start = position
        var field: [UInt8] = []
        position += 1
        while position < line.count {
            if line[position] != quote {
                field.append(line[position])
            } else if position + 1 < line.count, line[position + 1] == quote {
                field.append(quote)
                position += 1
            } else {
                position += 1
                guard position == line.count || line[position] == comma else {
                    throw Malformed(reason: "something behind a closing quote, at byte \(position + 1)")
                }
                return field
            }
            position += 1
        }
        throw Malformed(reason: "a quote that is not closed, at byte \(start + 1)")
    }

    struct Malformed: Error, Equatable { var reason: String }
}
