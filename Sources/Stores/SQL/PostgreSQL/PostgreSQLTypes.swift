import CountersignAuthority

/// The types of the covered columns, which are part of a row's encoding. The encodings are those of SQLite,
/// so that a row has the same tag in both.
enum PostgreSQLTypes {
    private static let integers: Set = [
        "created", "number", "retired_at", "warn_at", "read_only_at", "since", "percent", "user_id",
        "account", "first_seen", "change", "used", "ended_at", "epoch", "epoch_began",
        "token_expires", "token_issued", "refresh_counter", "length", "expires", "claimed",
        "upload_ticket.attempts", "made", "tries", "verified", "urgency",
    ]
    private static let blobs: Set = [
        "sealed", "sealed_secret", "sealed_next_secret", "credential", "sealed_record", "sealed_legacy",
        "reset_codes", "pseudonym", "id", "signing_key", "agreement_key", "sealed_root",
        "sealed_previous_root", "session.attempts", "next_sealed_root", "next_ephemeral", "next_attempts",
        "token_hash", "previous_token_hash", "login_token_hash", "previous_login_token_hash",
        "refresh_digest", "upload_ticket.session", "target", "sha256", "tombstone", "value", "body",
        "digest",
    ]

    static func isInteger(_ table: AuthenticatedTable, column place: Int) -> Bool {
        contains(column: place, of: table, in: integers)
    }

    static func isText(_ table: AuthenticatedTable, column place: Int) -> Bool {
        !contains(column: place, of: table, in: integers) && !contains(column: place, of: table, in: blobs)
    }

    private static func contains(column place: Int, of table: AuthenticatedTable, in names: Set<String>)
        -> Bool
    {
        names.contains(table.columns[place]) || names.contains("\(table.name).\(table.columns[place])")
    }
}

extension AuthenticatedTable {
    /// An expression for the encoding of a row (``RowMessage``). `row` stands before the columns.
    func encoding(of row: String) -> String {
        func literal(_ bytes: [UInt8]) -> String {
            "'\\x" + bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
                + "'::bytea"
        }
        func title(_ text: String, type: [UInt8]) -> String {
            literal([UInt8(truncatingIfNeeded: text.utf8.count)] + text.utf8 + type)
        }
        var parts = [title(name, type: [])]
        for (place, column) in columns.enumerated() {
            if PostgreSQLTypes.isInteger(self, column: place) {
                parts.append("coalesce(\(title(column, type: [1])) || int8send(\(row)\(column)), '')")
            } else {
                let type: UInt8 = PostgreSQLTypes.isText(self, column: place) ? 2 : 3
                parts.append(
                    "coalesce(\(title(column, type: [type])) || int4send(octet_length(\(row)\(column)))"
                        + " || \(row)\(column), '')")
            }
        }
        return parts.joined(separator: " || ")
    }

    /// The same behind the tag's length and the tag.
    func taggedEncoding(of row: String) -> String {
        "(int4send(coalesce(octet_length(\(row)row_tag), 0)) || coalesce(\(row)row_tag, '') || "
            + encoding(of: row) + ")"
    }
}
