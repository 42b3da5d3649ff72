import CountersignWire

/// What a thief has carried away, read without knowing what it is: every value in it, and which values stand together.
struct Loot: Sendable {
    /// Values that stand together: a row of a table, a file, an item of a vault.
    struct Record: Sendable {
        /// `tokens 17`, `preferences.json`.
        let place: String
        /// As they stand there; numbers in decimal.
        let values: [[UInt8]]
    }

    /// As they lay there.
    private(set) var records: [Record] = []

    init(_ records: [Record] = []) { self.records = records }

    mutating func add(_ others: [Record]) { records += others }

    /// Those that concern `name`: where it stands first, then those that share a value with one of these, such as the tokens of a
    /// user's number.
    func about(_ name: String) -> [Record] {
        let named = records.filter { $0.mentions(name) }
        let telling = Set(named.flatMap(\.values)).filter(isTelling)
        return named + records.filter { !$0.mentions(name) && !telling.isDisjoint(with: $0.values) }
    }

    /// All of them, those that concern `name` first.
    func ranked(by name: String) -> [Record] {
        let first = about(name)
        let places = Set(first.map(\.place))
        return first + records.filter { !places.contains($0.place) }
    }

    /// What stands in every other record (a state, a kind, the app's name) connects nothing.
    private func isTelling(_ value: [UInt8]) -> Bool {
        !value.isEmpty && records.count { $0.values.contains(value) } <= max(6, records.count / 8)
    }
}

extension Loot.Record {
    /// All that may be sent as text: secrets are long, so the longest come first.
    var texts: [String] {
        var found: Set<String> = []
        for value in values { found.formUnion(Readings.texts(value)) }
        return found.sorted { ($0.utf8.count, $0) > ($1.utf8.count, $1) }
    }

    /// All that may be a key, as it is and decoded.
    var keys: [[UInt8]] { values.flatMap(Readings.keys) }

    /// Each stretch of 32 bytes of what may be more than a key.
    var stretches: [[UInt8]] { values.flatMap(Readings.stretches) }

    func mentions(_ name: String) -> Bool { values.contains { $0.elementsEqual(name.utf8) } }

    /// Whole numbers over 0, such as users have.
    var numbers: [String] {
        values.compactMap { String(validating: $0, as: UTF8.self) }.filter { Int64($0).map { $0 > 0 } ?? false }
    }

    /// For people: values that are no text in hex.
    var shown: String {
        let parts = values.map { value in
            let text = String(validating: value, as: UTF8.self)
            return String((text ?? Hex.encode(value.span)).prefix(80))
        }
        return "\(place): \(parts.joined(separator: " | "))"
    }
}
