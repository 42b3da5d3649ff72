import CountersignAuthority

/// A statement of the stores as PostgreSQL takes it, translated once for each connection.
///
/// The stores' SQL has `?` and `?NUMBER` for values, which become `$NUMBER`, and a function that verifies a
/// row; it becomes the row's tag and encoding, which the client verifies.
struct PostgreSQLCommand {
    let sql: String
    /// The number of values.
    let count: Int
    /// Whether it returns tags for the client to verify.
    let readsTags: Bool
    /// Whether it may write rows that have tags.
    let writesTaggedRows: Bool

    init(_ sql: String) {
        let reader = Translation(sql)
        self.sql = reader.sql
        count = reader.count
        readsTags = reader.readsTags
        let words = sql.split(maxSplits: 4, whereSeparator: { " \n(".contains($0) })
        let table: Substring? =
            switch words.first {
            case "INSERT", "DELETE": words.count > 2 ? words[2] : nil
            case "UPDATE": words.count > 1 ? words[1] : nil
            default: nil
            }
        writesTaggedRows = table.map { name in AuthenticatedTable.all.contains { $0.name == name } } ?? false
    }

    private struct Translation {
        private static let check = Array("cs_row_is_authentic(".utf8)

        private(set) var sql = ""
        private(set) var count = 0
        private(set) var readsTags = false

        init(_ text: String) {
            var bytes: [UInt8] = []
            var rest = Array(text.utf8)[...]
            var isLiteral = false
            while let byte = rest.first {
                if !isLiteral, byte == UInt8(ascii: "c"), rest.starts(with: Translation.check),
                    let end = rest.firstIndex(of: UInt8(ascii: ")"))
                {
                    let inner = rest[(rest.startIndex + Translation.check.count)..<end]
                    bytes += Array(Translation.tagged(inner).utf8)
                    readsTags = true
                    rest = rest[(end + 1)...]
                    continue
                }
                rest = rest.dropFirst()
                if byte == UInt8(ascii: "'") { isLiteral.toggle() }
                guard byte == UInt8(ascii: "?"), !isLiteral else {
                    bytes.append(byte)
                    continue
                }
                let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
                let number = Int(String(decoding: digits, as: UTF8.self)) ?? count + 1
                count = max(count, number)
                rest = rest.dropFirst(digits.count)
                bytes += Array("$\(number)".utf8)
            }
            sql = String(decoding: bytes, as: UTF8.self)
        }

        /// `arguments` are the table's number and the names of its tag and columns, which have the row's name
        /// before them.
        private static func tagged(_ arguments: ArraySlice<UInt8>) -> String {
            let parts = String(decoding: arguments, as: UTF8.self).split(separator: ",")
            guard let number = parts.first.flatMap({ Int($0) }),
                AuthenticatedTable.all.indices.contains(number),
                parts.count > 1
            else { return "NULL" }
            let tag = parts[1].drop { $0 == " " }
            let row = tag.firstIndex(of: ".").map { String(tag[...$0]) } ?? ""
            return AuthenticatedTable.all[number].taggedEncoding(of: row)
        }
    }
}
