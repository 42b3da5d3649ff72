import CountersignWire

/// Parses the file of an existing backend's accounts as its bytes arrive; it holds at most one line,
/// whatever the file's size. Each line gives an account or an error; an error affects its own line only,
/// except one in the header.
///
/// Pure: the caller feeds pieces of the file of any size and handles the results.
package struct ImportReader {
    package enum Format: Sendable {
        /// Comma-separated values; the first line names the columns, in any order.
        case csv
        /// One JSON object a line.
        case jsonLines
    }

    /// Bytes of a line without its line break: room for the longest name and value with every byte escaped.
    package static let longestLine = 16_384

    private let format: Format
    private var line: [UInt8] = []
    /// The number of the line in `line`, from 1.
    private var number = 1
    private var isTooLong = false
    private var columns: [ImportColumn]?

    package init(_ format: Format) { self.format = format }

    package enum Line: Sendable {
        case account(ImportedAccount)
        case error(ImportError)
    }

    /// Takes the next piece of the file; passes each line that ends in it to `take`. Throws if the header
    /// is invalid, because the rest can then not be read.
    package mutating func feed(_ piece: Span<UInt8>, take: (Line) -> Void) throws(ImportError) {
        for index in 0..<piece.count {
            let byte = piece[index]
            if byte == UInt8(ascii: "\n") {
                try endLine(take)
            } else if line.count < ImportReader.longestLine {
                line.append(byte)
            } else {
                isTooLong = true
            }
        }
    }

    /// Ends the file, whose last line may lack a line break. Throws if there was no header.
    package mutating func finish(_ take: (Line) -> Void) throws(ImportError) {
        if !line.isEmpty { try endLine(take) }
        if format == .csv, columns == nil { throw headerError("the file is empty") }
    }

    private mutating func endLine(_ take: (Line) -> Void) throws(ImportError) {
        defer {
            // Values may be passwords: the buffer is cleared before the next line.
            for index in line.indices { line[index] = 0 }
            line.removeAll(keepingCapacity: true)
            isTooLong = false
            number += 1
        }
        if number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        if format == .csv, columns == nil {
            columns = try header()
            return
        }
        // A blank line, as at the end of many files, is neither an account nor an error.
        guard !line.isEmpty else { return }
        do throws(ImportError) {
            guard !isTooLong else { throw importError("more than \(ImportReader.longestLine) bytes") }
            take(.account(try row().account()))
        } catch {
            take(.error(error))
        }
    }

    private func row() throws(ImportError) -> ImportRow {
        switch format {
        case .csv: try csvRow()
        case .jsonLines: try jsonRow()
        }
    }

    private func importError(_ reason: String, in column: ImportColumn? = nil) -> ImportError {
        ImportError(line: number, column: column, reason: reason)
    }
}

extension ImportReader {
    private func fields() throws(ImportError) -> [[UInt8]] {
        try CSVLine(line, number: number).fields(atMost: ImportColumn.allCases.count)
    }

    /// Requires each of the four columns once and no other: an unknown column may be a misspelt one.
    private func header() throws(ImportError) -> [ImportColumn] {
        guard !isTooLong else { throw headerError("more than \(ImportReader.longestLine) bytes") }
        var columns: [ImportColumn] = []
        for field in try fields() {
            guard let column = ImportColumn(rawValue: String(decoding: field, as: UTF8.self)) else {
                throw headerError("a column of another name")
            }
            guard !columns.contains(column) else { throw headerError("the column \(column.rawValue) twice") }
            columns.append(column)
        }
        for column in ImportColumn.allCases where !columns.contains(column) {
            throw headerError("no column \(column.rawValue)")
        }
        return columns
    }

    private func headerError(_ reason: String) -> ImportError {
        let expected = ImportColumn.allCases.map(\.rawValue).joined(separator: ",")
        return ImportError(line: 1, reason: "\(reason); the first line is `\(expected)`, in any order")
    }

    private func csvRow() throws(ImportError) -> ImportRow {
        let fields = try fields()
        let columns = columns ?? []
        guard fields.count == columns.count else {
            throw importError("\(fields.count) fields, where the header has \(columns.count)")
        }
        var row = ImportRow(line: number)
        for (column, field) in zip(columns, fields) { row.set(column, to: field) }
        return row
    }

    private func jsonRow() throws(ImportError) -> ImportRow {
        let document: JSONDocument
        do {
            document = try JSONReader.read(line)
        } catch {
            throw importError(error.description)
        }
        guard let members = document.root.members else {
            throw importError("expected an object, not \(document.root.kind)")
        }
        var row = ImportRow(line: number)
        for member in members {
            // The message does not repeat the name: a malformed line may have any value in its place.
            guard let column = ImportColumn(rawValue: member.name) else {
                throw importError("a member of another name")
            }
            switch member.value.content {
            case .string(let text): row.set(column, to: Array(text.utf8))
            case .number where column == .userID: row.set(column, to: Array(document.bytes(of: member.value)))
            default: throw importError("expected a string, not \(member.value.kind)", in: column)
            }
        }
        return row
    }
}

/// The fields of one line of comma-separated values. Source: RFC 4180, without line breaks inside quotes:
/// no name or hash has one, and a stray quote then spoils one line instead of the rest of the file.
struct CSVLine {
    private let line: [UInt8]
    private let number: Int

    /// `line` contains no line break; `number` is its number in the file, for errors.
    init(_ line: [UInt8], number: Int) { (self.line, self.number) = (line, number) }

    func fields(atMost most: Int) throws(ImportError) -> [[UInt8]] {
        var fields: [[UInt8]] = []
        var position = 0
        while true {
            guard fields.count < most else { throw error("more than \(most) fields") }
            fields.append(try field(at: &position))
            guard position < line.count else { return fields }
            // `field` stops at a comma or at the end.
            position += 1
        }
    }

    private static let quote = UInt8(ascii: "\"")
    private static let comma = UInt8(ascii: ",")

    private func field(at position: inout Int) throws(ImportError) -> [UInt8] {
        if position < line.count, line[position] == CSVLine.quote { return try quotedField(at: &position) }
        let start = position
        while position < line.count, line[position] != CSVLine.comma {
            guard line[position] != CSVLine.quote else {
                throw error("a quote inside a field that has none around it, at byte \(position + 1)")
            }
            position += 1
        }
        return Array(line[start..<position])
    }

    /// A field between quotes, in which a quote is written twice.
    private func quotedField(at position: inout Int) throws(ImportError) -> [UInt8] {
        let start = position
        var field: [UInt8] = []
        position += 1
        while position < line.count {
            if line[position] != CSVLine.quote {
                field.append(line[position])
            } else if position + 1 < line.count, line[position + 1] == CSVLine.quote {
                field.append(CSVLine.quote)
                position += 1
            } else {
                position += 1
                guard position == line.count || line[position] == CSVLine.comma else {
                    throw error("something behind a closing quote, at byte \(position + 1)")
                }
                return field
            }
            position += 1
        }
        throw error("a quote that is not closed, at byte \(start + 1)")
    }

    private func error(_ reason: String) -> ImportError { ImportError(line: number, reason: reason) }
}
