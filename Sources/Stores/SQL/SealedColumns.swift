/// The columns of a table that are sealed under the master key.
///
/// During a rotation, a process that has not noticed the new key would still seal under the former one.
/// Triggers therefore require that each new sealed value begins with the byte in `seal-slot`. A value that
/// the row already has, in any column, may stay. Source:
/// docs/decisions/0059-rotation-of-the-master-key.md.
struct SealedColumns {
    let table: String
    let columns: [String]
    /// Which rows have sealed values.
    let condition: String

    static let all = [
        SealedColumns("app_setting", columns: "sealed"),
        SealedColumns("release", columns: "sealed_secret", "sealed_next_secret"),
        SealedColumns("account", columns: "sealed_record", "sealed_legacy"),
        SealedColumns("session", columns: "sealed_root", "sealed_previous_root", "next_sealed_root"),
        SealedColumns("idempotent_request", columns: "body"),
        SealedColumns("meta", columns: "value", of: sealedNames),
    ]

    /// The deployment's own values that are sealed.
    private static let sealedNames = """
        NEW.name IN ('answer-key', 'assertion-keys', 'opaque-keys', 'registration-key', 'bearer-key', \
        'tombstone-key', 'webhook-keys')
        """

    private init(_ table: String, columns: String..., of condition: String = "true") {
        (self.table, self.columns, self.condition) = (table, columns, condition)
    }
}
