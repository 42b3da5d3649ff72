import CountersignSeal
import CountersignWire

/// What the build that migrated a store says of the schema that it made. Builds of earlier levels cannot know
/// that schema: they compare the catalogue with the digests of this record, which is sealed under a key that
/// is not in the database.
package struct SchemaRecord: Sendable, Equatable {
    /// The number of migrations that the schema has.
    package var level: Int64
    /// The oldest level whose builds can use it.
    package var oldestLevel: Int64
    /// What each part of the catalogue has as its digest, by the part's name.
    package var digests: [String: String]

    package init(level: Int64, oldestLevel: Int64, digests: [String: String]) {
        (self.level, self.oldestLevel, self.digests) = (level, oldestLevel, digests)
    }

    /// A line for the levels, and one for each part.
    var text: String {
        let parts = digests.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return (["\(level) \(oldestLevel)"] + parts).joined(separator: "\n")
    }

    init?(text: String) {
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        guard let head = lines.first, lines.allSatisfy({ $0.count == 2 }), let level = Int64(head[0]),
            let oldestLevel = Int64(head[1])
        else { return nil }
        self.level = level
        self.oldestLevel = oldestLevel
        digests = Dictionary(lines.dropFirst().map { ($0[0], $0[1]) }) { first, _ in first }
    }
}

extension RowAuthenticator {
    package func seal(_ record: SchemaRecord) -> [UInt8] {
        sealUnderDigestKey(Secret(copying: Array(record.text.utf8).span), as: .schemaRecord)
    }

    /// Nil if it was not sealed as a record of this deployment's schema.
    package func openSchemaRecord(_ sealed: [UInt8]) -> SchemaRecord? {
        openUnderDigestKey(sealed, as: .schemaRecord)?.withExposedBytes { bytes in
            SchemaRecord(text: String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self))
        }
    }
}
