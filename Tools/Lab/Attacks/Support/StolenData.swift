import CSQLite
import CountersignClient
import CountersignSeal
import CountersignVault
import CountersignWire

/// Stolen data, read without knowledge of its schema: every value, and which values stand together.
struct StolenData: Sendable {
    /// Values that stand together: a row of a table, a file, an item of a vault.
    struct Record: Sendable {
        /// `tokens 17`, `preferences.json`.
        let place: String
        /// The stored bytes; numbers in decimal.
        let values: [[UInt8]]
    }

    /// In the order in which they were read.
    private(set) var records: [Record] = []

    init(_ records: [Record] = []) { self.records = records }

    mutating func add(_ others: [Record]) { records += others }

    /// The records about `name`: those that contain it, then those that share a value with one of these, such
    /// as the tokens of the user's number.
    func records(concerning name: String) -> [Record] {
        let named = records.filter { $0.mentions(name) }
        let telling = Set(named.flatMap(\.values)).filter(isDistinctive)
        return named + records.filter { !$0.mentions(name) && !telling.isDisjoint(with: $0.values) }
    }

    /// All records, those about `name` first.
    func ranked(by name: String) -> [Record] {
        let first = records(concerning: name)
        let places = Set(first.map(\.place))
        return first + records.filter { !places.contains($0.place) }
    }

    /// A value of many records, such as a state, a kind or the app's name, connects nothing.
    private func isDistinctive(_ value: [UInt8]) -> Bool {
        !value.isEmpty && records.count { $0.values.contains(value) } <= max(6, records.count / 8)
    }
}

extension StolenData.Record {
    /// Every value that may be sent as text, the longest first, since secrets are long.
    var texts: [String] {
        var found: Set<String> = []
        for value in values { found.formUnion(ValueInterpreter.texts(in: value)) }
        return found.sorted { ($0.utf8.count, $0) > ($1.utf8.count, $1) }
    }

    /// Every value that may be a key, as stored and decoded.
    var keys: [[UInt8]] { values.flatMap(ValueInterpreter.keys) }

    /// Each slice of 32 bytes of a value that is longer than a key.
    var keySizedSlices: [[UInt8]] { values.flatMap(ValueInterpreter.keySizedSlices) }

    func mentions(_ name: String) -> Bool { values.contains { $0.elementsEqual(name.utf8) } }

    /// Whole numbers over 0, which may be user numbers.
    var numbers: [String] {
        values.compactMap { String(validating: $0, as: UTF8.self) }.filter {
            Int64($0).map { $0 > 0 } ?? false
        }
    }

    /// For the report; values that are no UTF-8 in hexadecimal.
    var shown: String {
        let parts = values.map { value in
            let text = String(validating: value, as: UTF8.self)
            return String((text ?? Hex.encode(value.span)).prefix(80))
        }
        return "\(place): \(parts.joined(separator: " | "))"
    }
}

extension StolenData {
    /// Every row of every table of the SQLite files at `paths`. The newest rows of a table come first.
    init(databases paths: [String]) throws(LabError) {
        self.init()
        for path in paths { add(try StolenData.rows(of: path)) }
    }

    private static let mostRows = 20_000

    private static func rows(of path: String) throws(LabError) -> [Record] {
        var handle: OpaquePointer?
        defer { sqlite3_close_v2(handle) }
        guard sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK, let handle else {
            throw LabError("\(path): a stolen database that cannot be opened")
        }
        var rows: [Record] = []
        for table in try select(
            "SELECT name FROM sqlite_schema WHERE type = 'table'", of: "tables", in: handle)
        {
            guard let name = table.values.first.map({ String(decoding: $0, as: UTF8.self) }) else { continue }
            let quoted = name.split(separator: "\"", omittingEmptySubsequences: false).joined(
                separator: "\"\"")
            rows += try select("SELECT * FROM \"\(quoted)\" LIMIT \(mostRows)", of: name, in: handle)
                .reversed()
        }
        guard !rows.isEmpty else { throw LabError("\(path): a stolen database with nothing in it") }
        return rows
    }

    private static func select(_ sql: String, of table: String, in handle: OpaquePointer) throws(LabError)
        -> [Record]
    {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else {
            throw LabError("\(table): \(String(cString: sqlite3_errmsg(handle)))")
        }
        var rows: [Record] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            let columns = 0..<sqlite3_column_count(statement)
            let values = columns.filter { sqlite3_column_type(statement, $0) != SQLITE_NULL }.map { column in
                // SQLite returns numbers as text here, in decimal.
                let start = sqlite3_column_blob(statement, column)
                let count = Int(sqlite3_column_bytes(statement, column))
                return start.map { Array(UnsafeRawBufferPointer(start: $0, count: count)) } ?? []
            }
            rows.append(Record(place: "\(table) \(rows.count + 1)", values: values))
        }
        return rows
    }
}

extension StolenData {
    /// Every file of a device's backup, and the contents of vaults whose key is in it. Vaults are opened in
    /// `copy`, a folder of the attacker's, so that the app's own files stay unchanged.
    init(backupOf folder: String, into copy: String) throws(LabError) {
        self.init()
        var folders: Set<String> = []
        for path in try Files.all(below: folder) {
            let bytes = try Files.read(path)
            let place = String(path.dropFirst(folder.count + 1))
            add([Record(place: place, values: StolenData.members(bytes) ?? [bytes])])
            folders.insert(try StolenData.copy(bytes, at: place, in: copy))
        }
        guard !records.isEmpty else { throw LabError("\(folder): a device with nothing on it") }
        for path in folders.sorted() { add(StolenData.vaultItems(in: path)) }
    }

    /// The texts of a preferences file; nil if the file is not a preferences file.
    private static func members(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard let document = try? JSONReader.read(bytes), let members = document.root.members else {
            return nil
        }
        return members.compactMap { $0.value.string.map { Array($0.utf8) } }
    }

    /// Copies a file, and returns the folder of the copy.
    private static func copy(_ bytes: [UInt8], at place: String, in copy: String) throws(LabError) -> String {
        var folder = copy
        try Files.makeFolder(folder)
        for part in place.split(separator: "/").dropLast() {
            folder += "/\(part)"
            try Files.makeFolder(folder)
        }
        try Files.write(bytes, to: "\(copy)/\(place)")
        return folder
    }

    /// The parts of what a legacy client keeps, whose format is public; other contents unchanged.
    private static func values(_ contents: Secret) -> [[UInt8]] {
        guard let kept = LegacyPersistedState(contents) else { return [contents.unwipedBytes] }
        let secrets = [kept.session?.token, kept.session?.loginToken, kept.remembered?.value].compactMap(
            \.self)
        let user = kept.session.map { [Array($0.account.utf8), Array(String($0.userID).utf8)] } ?? []
        return secrets.map(\.unwipedBytes) + user
    }

    /// The items of a vault whose key lies beside it; empty where the key does not.
    private static func vaultItems(in folder: String) -> [Record] {
        let vault = Vault(.folder(folder))
        guard let names = try? vault.list() else { return [] }
        return names.compactMap { name in
            guard let item = try? vault.read(name).get() else { return nil }
            return Record(place: "\(name)", values: StolenData.values(item.contents.secret))
        }
    }
}
