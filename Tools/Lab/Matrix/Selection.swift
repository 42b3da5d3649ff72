/// The selected rows and attacks.
package struct Selection: Sendable {
    /// In the order of the table.
    package let rows: [RowProfile]
    /// In the order of the table.
    package let attacks: [any Attack]

    /// Selects by words that may contain several names, separated by commas, and `*` for any characters;
    /// without words all are selected. An attack is selected by its name or its column's.
    package init(
        rows rowWords: [String], attacks attackWords: [String], allRows: [RowProfile] = RowCatalogue.all,
        allAttacks: [any Attack] = AttackCatalogue.all
    ) throws(SelectionError) {
        let rows = try Selection.names(matching: rowWords, kind: .row, in: allRows.map(\.name.description))
        let attacks = try Selection.names(
            matching: attackWords, kind: .attack,
            in: allAttacks.flatMap { [$0.name.description, $0.column.rawValue] })
        self.rows = allRows.filter { rows?.contains($0.name.description) ?? true }
        self.attacks = allAttacks.filter {
            guard let attacks else { return true }
            return attacks.contains($0.name.description) || attacks.contains($0.column.rawValue)
        }
    }

    /// Nil selects all.
    private static func names(
        matching words: [String], kind: SelectionError.Kind, in known: [String]
    ) throws(SelectionError) -> Set<String>? {
        guard !words.isEmpty else { return nil }
        var chosen: Set<String> = []
        for word in words.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            let pattern = Array(word.utf8)
            let found = known.filter { matches(Array($0.utf8)[...], pattern: pattern[...]) }
            guard !found.isEmpty else { throw SelectionError(kind: kind, word: String(word), known: known) }
            chosen.formUnion(found)
        }
        return chosen
    }

    private static func matches(_ name: ArraySlice<UInt8>, pattern: ArraySlice<UInt8>) -> Bool {
        guard let first = pattern.first else { return name.isEmpty }
        let rest = pattern.dropFirst()
        guard first == UInt8(ascii: "*") else {
            return name.first == first && matches(name.dropFirst(), pattern: rest)
        }
        return matches(name, pattern: rest) || (!name.isEmpty && matches(name.dropFirst(), pattern: pattern))
    }
}

/// A word that names neither a row nor an attack.
package struct SelectionError: Error, Sendable {
    package enum Kind: Sendable { case row, attack }

    package let kind: Kind
    package let word: String
    /// The known names in the order of the table; for attacks the names of columns, too.
    package let known: [String]

    fileprivate init(kind: Kind, word: String, known: [String]) {
        self.kind = kind
        self.word = word
        var seen: Set<String> = []
        self.known = known.filter { seen.insert($0).inserted }
    }
}
