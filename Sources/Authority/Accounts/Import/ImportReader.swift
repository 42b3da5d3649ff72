import CountersignWire

/// Reads an old backend's accounts as the bytes of the file come: never more than one line is held, whatever the file's
/// size. Each line gives an account or a problem; a problem spoils its own line only, but for one in the header.
///
/// Pure: who reads the file feeds the pieces, in whatever sizes they come, and counts what comes out.
package struct ImportReader {
    package enum Format: Sendable {
        /// Comma-separated values; the first line names the columns, in any order.
        case csv
        /// One JSON object a line.
        case jsonLines
    }

    /// Bytes of a line, without its end. Room for the longest name and value, every byte of them escaped.
    package static let longestLine = 16_384

    private let format: Format
    private var line: [UInt8] = []
    /// Of the line that is being gathered; from 1 on.
    private var number = 1
    private var isTooLong = false
    private var columns: [ImportColumn]?

    package init(_ format: Format) { self.format = format }

    package enum Line: Sendable {
        case account(ImportedAccount)
        case problem(ImportProblem)
    }

    /// Takes the next piece of the file; hands each line that ends in it to `take`. Fails where the header does: then
    /// nothing can be read from the rest.
    package mutating func feed(_ piece: Span<UInt8>, _ take: (Line) -> Void) throws(ImportProblem) {
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

    /// The end of the file, where a last line may lack its line break. Fails where there was no header.
    package mutating func finish(_ take: (Line) -> Void) throws(ImportProblem) {
        if !line.isEmpty { try endLine(take) }
        if format == .csv, columns == nil { throw headerProblem("the file is empty") }
    }

    private mutating func endLine(_ take: (Line) -> Void) throws(ImportProblem) {
        defer {
            // Values may be passwords: they do not stay in the buffer for the next line to lie over.
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
        // A blank line, as at many a file's end, is no account and no mistake.
        guard !line.isEmpty else { return }
        do throws(ImportProblem) {
            guard !isTooLong else { throw problem("more than \(ImportReader.longestLine) bytes") }
            take(.account(try row().account()))
        } catch {
            take(.problem(error))
        }
    }

    private func row() throws(ImportProblem) -> ImportRow {
        switch format {
        case .csv: try csvRow()
        case .jsonLines: try jsonRow()
        }
    }

    private func problem(_ reason: String, _ column: ImportColumn? = nil) -> ImportProblem {
        ImportProblem(line: number, column: column, reason: reason)
    }
}

extension ImportReader {
    private func fields() throws(ImportProblem) -> [[UInt8]] {
        do throws(CSVLine.Malformed) {
            return try CSVLine.fields(line, atMost: ImportColumn.allCases.count)
        } catch {
            throw problem(error.reason)
        }
    }

    /// All four columns, once each, and no other: a column that is not known may be one that was misspelt.
    private func header() throws(ImportProblem) -> [ImportColumn] {
        guard !isTooLong else { throw headerProblem("more than \(ImportReader.longestLine) bytes") }
        var columns: [ImportColumn] = []
        for field in try fields() {
            guard let column = ImportColumn(rawValue: String(decoding: field, as: UTF8.self)) else {
                throw headerProblem("a column of another name")
            }
            guard !columns.contains(column) else { throw headerProblem("the column \(column.rawValue) twice") }
            columns.append(column)
        }
        for column in ImportColumn.allCases where !columns.contains(column) {
            throw headerProblem("no column \(column.rawValue)")
        }
        return columns
    }

    private func headerProblem(_ reason: String) -> ImportProblem {
        let expected = ImportColumn.allCases.map(\.rawValue).joined(separator: ",")
        return ImportProblem(line: 1, reason: "\(reason); the first line is `\(expected)`, in any order")
    }

    private func csvRow() throws(ImportProblem) -> ImportRow {
        let fields = try fields()
        let columns = columns ?? []
        guard fields.count == columns.count else {
            throw problem("\(fields.count) fields, where the header has \(columns.count)")
        }
        var row = ImportRow(line: number)
        for (column, field) in zip(columns, fields) { row.set(column, field) }
        return row
    }

    private func jsonRow() throws(ImportProblem) -> ImportRow {
        let document: JSONDocument
        do throws(MalformedJSON) {
            document = try JSONReader.read(line)
        } catch {
            throw problem(error.description)
        }
        guard let members = document.root.members else {
            throw problem("expected an object, not \(document.root.kind)")
        }
        var row = ImportRow(line: number)
        for member in members {
            // The name is not repeated in the message: a line that is put together wrongly may hold anything there.
            guard let column = ImportColumn(rawValue: member.name) else { throw problem("a member of another name") }
            switch member.value.content {
            case .string(let text): row.set(column, Array(text.utf8))
            case .number where column == .userID: row.set(column, Array(document.bytes(of: member.value)))
            default: throw problem("expected a string, not \(member.value.kind)", column)
            }
        }
        return row
    }
}
