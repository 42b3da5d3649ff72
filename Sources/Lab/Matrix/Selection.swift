/// Which rows and attacks somebody asked for.
package struct Selection: Sendable {
    /// In the order of the table.
    package let rows: [RowProfile]
    /// In the order of the table.
    package let attacks: [any Attack]

    /// By words that may hold several names, with commas between them, and `*` for any characters; without words it is all. An attack is
    /// chosen by its name or by its column's.
    package init(
        rows rowWords: [String], attacks attackWords: [String], of allRows: [RowProfile] = RowCatalogue.all,
        _ allAttacks: [any Attack] = AttackCatalogue.all
    ) throws(UnknownName) {
        let rows = try Selection.names(rowWords, .row, in: allRows.map(\.name.description))
        let attacks = try Selection.names(
            attackWords, .attack, in: allAttacks.flatMap { [$0.name.description, $0.column.rawValue] })
        self.rows = allRows.filter { rows?.contains($0.name.description) ?? true }
        self.attacks = allAttacks.filter {
            guard let attacks else { return true }
            return attacks.contains($0.name.description) || attacks.contains($0.column.rawValue)
        }
    }

    /// Nil for all.
    private static func names(
        _ words: [String], _ kind: UnknownName.Kind, in known: [String]
    ) throws(UnknownName) -> Set<String>? {
        guard !words.isEmpty else { return nil }
        var chosen: Set<String> = []
        for word in words.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            let pattern = Array(word.utf8)
            let found = known.filter { matches(Array($0.utf8)[...], pattern[...]) }
            guard !found.isEmpty else { throw UnknownName(kind: kind, word: String(word), known: known) }
            chosen.formUnion(found)
        }
        return chosen
    }

    private static func matches(_ name: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        guard let first = pattern.first else { return name.isEmpty }
        let rest = pattern.dropFirst()
        guard first == UInt8(ascii: "*") else {
            return name.first == first && matches(name.dropFirst(), rest)
        }
        return matches(name, rest) || (!name.isEmpty && matches(name.dropFirst(), pattern))
    }
}

/// A word that names neither a row nor an attack.
package struct UnknownName: Error, Sendable {
    package enum Kind: Sendable { case row, attack }

    package let kind: Kind
    package let word: String
    /// What there is, in the order of the table; of attacks their columns, too.
    package let known: [String]

    fileprivate init(kind: Kind, word: String, known: [String]) {
        self.kind = kind
        self.word = word
        var seen: Set<String> = []
        self.known = known.filter { seen.insert($0).inserted }
    }
}
