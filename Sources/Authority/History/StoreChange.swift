import CountersignMemory
import CountersignSeal
import CountersignWire

/// What one transaction of this machine has changed of rows whose loss would revive something. Each data
/// folder keeps those of its own processes (``StoreChangeFile``): if a database is lost with its last
/// transactions, ``LostChanges`` tells from them what had ended.
package struct StoreChange: Sendable, Equatable {
    /// A digest of the sealed summary before the transaction, which no other transaction has left.
    package var before: [UInt8]
    /// The same after it.
    package var after: [UInt8]
    /// ``StoreHead/position`` after it.
    package var position: UInt64
    /// When it was committed, in whole Unix seconds.
    package var time: Int64 = 0
    /// The changed and removed rows, each with the columns of ``keptColumns(of:)`` alone.
    package var rows: [[UInt8]]

    package init(before: [UInt8], after: [UInt8], position: UInt64, rows: [[UInt8]]) {
        (self.before, self.after, self.position, self.rows) = (before, after, position, rows)
    }

    /// Identifies the state of a store by its sealed summary. Each sealing is random.
    package static func state(_ sealed: [UInt8]) -> [UInt8] {
        let digest = SHA256.digest(sealed.span)
        return digest.indices.map { digest[$0] }
    }

    /// Names no person: an erased account would remain in the file.
    private static let kept: [String: [String]] = [
        "session": ["id"], "upload_ticket": ["id"], "account_code": ["account", "id"],
        "account_verification": ["account"], "known_device": ["account", "id"],
        "account": ["number", "state"], "erased_name": ["app", "tombstone"],
        "release": ["key_id", "retired_at", "update_url", "warn_at", "read_only_at"],
        "release_rollout": ["key_id", "since", "percent"],
        "meta": ["name", "value"],
    ]
    /// Tables whose new rows matter, too: a tombstone, and the stages of a retirement.
    private static let added: Set<String> = ["erased_name", "release_rollout"]
    /// Columns that say when a session was used.
    private static let uses: Set<String> = ["change", "used"]

    /// What is kept of a row that was changed from `old` to `new`, either of which may be absent; nil if
    /// nothing is.
    package static func row(
        of table: AuthenticatedTable, changedFrom old: [String: RowMessage.Value]?,
        to new: [String: RowMessage.Value]?
    ) -> [UInt8]? {
        guard let columns = kept[table.name], let values = new ?? old,
            old != nil || added.contains(table.name)
        else { return nil }
        // An erasure removes tombstones that name the account; nothing ends by that.
        if table == .releaseRollout || table == .erasedName, new == nil { return nil }
        if table == .meta, values["name"] != .bytes(Array(MetaName.webhooks.rawValue.utf8)) { return nil }
        if table == .session, let old, let new, decisive(old) == decisive(new) { return nil }
        var message = RowMessage(table)
        for column in columns {
            switch values[column] {
            case .integer(let number)?: message.add(integer: number, column: column)
            case .bytes(let bytes)?: bytes.withUnsafeBytes { message.add(blob: $0, column: column) }
            case nil: break
            }
        }
        if table == .account, values["pseudonym"] == nil { message.add(integer: 1, column: "erased") }
        if table == .account, let before = old?["user_id"], before != new?["user_id"] {
            message.add(integer: 1, column: "user_id")
        }
        return message.bytes
    }

    private static func decisive(_ row: [String: RowMessage.Value]) -> [String: RowMessage.Value] {
        row.filter { !uses.contains($0.key) }
    }

    // MARK: Encoding

    /// `before ‖ after ‖ position ‖ time ‖ (length (4) ‖ row)…`
    fileprivate var bytes: [UInt8] {
        func number(_ value: UInt64, bytes count: Int) -> [UInt8] {
            (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
        }
        return before + after + number(position, bytes: 8) + number(UInt64(bitPattern: time), bytes: 8)
            + rows.flatMap { number(UInt64($0.count), bytes: 4) + $0 }
    }

    /// Nil if it is not what ``bytes`` writes.
    fileprivate init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        func take(_ count: Int) -> [UInt8]? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        func number(bytes count: Int) -> UInt64? { take(count)?.reduce(0) { $0 << 8 | UInt64($1) } }
        guard let before = take(32), let after = take(32), let position = number(bytes: 8),
            let time = number(bytes: 8)
        else { return nil }
        var rows: [[UInt8]] = []
        while !rest.isEmpty {
            guard let count = number(bytes: 4), let row = take(Int(count)) else { return nil }
            rows.append(row)
        }
        self.init(before: before, after: after, position: position, rows: rows)
        self.time = Int64(bitPattern: time)
    }
}

extension RowAuthenticator {
    func seal(_ change: StoreChange) -> [UInt8] {
        var bytes = change.bytes
        return sealUnderDigestKey(Secret(taking: &bytes), as: .storeChange)
    }

    /// Nil if it was not sealed by this deployment.
    func openChange(_ sealed: [UInt8]) -> StoreChange? {
        openUnderDigestKey(sealed, as: .storeChange).flatMap { opened in
            opened.withExposedBytes { span in StoreChange(span.indices.map { span[$0] }) }
        }
    }
}

extension SealBinding {
    fileprivate static let storeChange = SealBinding(kind: "store-change", row: "change")
}
