/// A table whose rows identify callers and grant permissions. Each row has a tag, and the table a digest;
/// ``RowAuthenticator`` computes both. Source: docs/decisions/0058-authenticated-rows.md.
///
/// All columns are covered unless ``excluded`` names them. A null is not part of the encoding, so that a
/// later version may add a nullable column without changing the tags of existing rows.
package struct AuthenticatedTable: Sendable, Equatable {
    /// The column that holds a row's tag, in every table.
    package static let tagColumn = "row_tag"

    package let name: String
    /// The covered columns, in the order of the encoding.
    package let columns: [String]
    /// The primary key.
    package let key: [String]
    /// The columns that name a row in reports, by their places in `columns`.
    package let label: [Int]
    /// The place in `columns` of the account's number, by which rows are grouped; nil for tables that are
    /// one group.
    package let account: Int?
    /// Columns that are written often and decide nothing.
    package let excluded: [String]
    /// Whether an authentic row is refused while the digest of its group does not match.
    package let refusesGroups: Bool
    /// The values of the column `name` whose rows are covered; empty for all rows.
    package let names: [String]

    private init(
        _ name: String, columns: String, key: String, label: String? = nil, account: String? = nil,
        excluding excluded: String = "", refusingGroups refusesGroups: Bool = true, names: [String] = []
    ) {
        func list(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
        let all = list(columns)
        self.name = name
        self.columns = all
        self.key = list(key)
        self.label = list(label ?? key).compactMap { all.firstIndex(of: $0) }
        self.account = account.flatMap { all.firstIndex(of: $0) }
        self.excluded = list(excluded)
        self.refusesGroups = refusesGroups
        self.names = names
    }

    package static let app = AuthenticatedTable("app", columns: "name created", key: "name")
    package static let appSetting = AuthenticatedTable(
        "app_setting", columns: "app name text sealed", key: "app name")
    package static let release = AuthenticatedTable(
        "release",
        columns: """
            number key_id app platform version scheme sealed_secret created retired_at update_url \
            sealed_next_secret warn_at read_only_at
            """, key: "number", label: "key_id")
    package static let releaseSetting = AuthenticatedTable(
        "release_setting", columns: "key_id name text", key: "key_id name")
    package static let releaseRollout = AuthenticatedTable(
        "release_rollout", columns: "key_id since percent", key: "key_id since")
    package static let account = AuthenticatedTable(
        "account",
        columns: """
            number app name user_id created state credential sealed_record rung sealed_legacy reset_codes \
            pseudonym
            """, key: "number", account: "number")
    package static let knownDevice = AuthenticatedTable(
        "known_device", columns: "account id signing_key class name first_seen", key: "account id",
        account: "account", excluding: "last_seen")
    package static let session = AuthenticatedTable(
        "session",
        columns: """
            change id account app platform device_class device_name created used ended_at end_reason \
            ended_by signing_key agreement_key epoch epoch_began sealed_root sealed_previous_root attempts \
            next_sealed_root next_ephemeral next_attempts token_hash token_expires previous_token_hash \
            login_token_hash token_issued previous_login_token_hash release opening key_storage \
            refresh_counter refresh_digest epoch_release previous_release next_release
            """, key: "change", label: "id", account: "account")
    package static let uploadTicket = AuthenticatedTable(
        "upload_ticket",
        columns: """
            number id session account release method authority target content_type length sha256 created \
            expires claimed attempts
            """, key: "number", account: "account")

    package static let accountCode = AuthenticatedTable(
        "account_code", columns: "account id purpose digest made expires tries", key: "account id",
        label: "account purpose", account: "account")
    package static let accountVerification = AuthenticatedTable(
        "account_verification", columns: "account verified", key: "account", account: "account")

    /// The tombstones of erased names and user ids.
    package static let erasedName = AuthenticatedTable(
        "erased_name", columns: "app tombstone", key: "app tombstone")

    /// The outbox of webhooks. The sender sends an authentic delivery even if another row of its group was
    /// deleted or put back: the deletion of one event must not hold back others, and receivers ignore a
    /// repeated event.
    package static let webhookDelivery = AuthenticatedTable(
        "webhook_delivery", columns: "number endpoint event account created urgency body", key: "number",
        label: "event endpoint", account: "account", excluding: "due attempts given_up failure",
        refusingGroups: false)

    /// The deployment's own values, except those of ``MetaName/exemption``.
    package static let meta = AuthenticatedTable(
        "meta", columns: "name value", key: "name",
        names: MetaName.allCases.filter { $0.exemption == nil }.map(\.rawValue))

    /// A table's place in this list is its number for stores.
    package static let all = [
        app, appSetting, release, releaseSetting, releaseRollout, account, knownDevice, session, uploadTicket,
        erasedName, meta, webhookDelivery, accountCode, accountVerification,
    ]

    /// The tables whose altered rows ``RowAuthenticationStore/deleteUnverified(groups:)`` deletes.
    package static let deletedIfAltered = [
        uploadTicket, knownDevice, session, webhookDelivery, accountCode, accountVerification,
    ]

    package var number: Int { AuthenticatedTable.all.firstIndex(of: self) ?? -1 }

    /// The tables that ``AuditVerification`` reports as a whole: each read of them checks their digest.
    package static let policies = [app, appSetting, release, releaseSetting, releaseRollout]

    /// The group of a row.
    package func group(ofAccount number: Int64?) -> Int {
        guard account != nil, let number else { return 0 }
        return Int(truncatingIfNeeded: UInt64(bitPattern: number) % UInt64(RowDigest.groups))
    }
}

/// The encoding of a row that tags and digests are computed from: the table's name, and for each column that
/// is not null its name, its type and its value. Each part has its length before it, or a fixed one, so that
/// no two rows have the same encoding.
package struct RowMessage {
    package private(set) var bytes: [UInt8] = []

    package init(_ table: AuthenticatedTable) {
        bytes.reserveCapacity(1_024)
        add(shortText: table.name)
    }

    package mutating func add(integer: Int64, column: String) {
        add(shortText: column)
        bytes.append(1)
        add(UInt64(bitPattern: integer), count: 8)
    }

    package mutating func add(text: UnsafeRawBufferPointer, column: String) {
        add(text, type: 2, column: column)
    }

    package mutating func add(blob: UnsafeRawBufferPointer, column: String) {
        add(blob, type: 3, column: column)
    }

    private mutating func add(_ content: UnsafeRawBufferPointer, type: UInt8, column: String) {
        add(shortText: column)
        bytes.append(type)
        add(UInt64(content.count), count: 4)
        bytes.append(contentsOf: content)
    }

    /// Names of tables and columns are constants of fewer than 256 bytes.
    private mutating func add(shortText text: String) {
        bytes.append(UInt8(truncatingIfNeeded: text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func add(_ number: UInt64, count: Int) {
        for index in (0..<count).reversed() {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index)))
        }
    }
}

extension RowMessage {
    /// A value of a decoded row.
    package enum Value: Sendable, Equatable {
        case integer(Int64)
        /// A text or blob.
        case bytes([UInt8])
    }

    /// An encoding that a store has made.
    package init(encoded bytes: [UInt8]) { self.bytes = bytes }

    /// The table's name, and the values that are not null by their columns; nil if it is no encoding.
    package func decoded() -> (table: String, values: [String: Value])? {
        var rest = bytes[...]
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count >= 0, rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func takeName() -> String? {
            take(1)?.first.flatMap { take(Int($0)) }.map { String(decoding: $0, as: UTF8.self) }
        }
        func takeNumber(bytes count: Int) -> UInt64? { take(count)?.reduce(0) { $0 << 8 | UInt64($1) } }
        guard let table = takeName() else { return nil }
        var values: [String: Value] = [:]
        while !rest.isEmpty {
            guard let column = takeName(), let type = take(1)?.first else { return nil }
            switch type {
            case 1:
                guard let number = takeNumber(bytes: 8) else { return nil }
                values[column] = .integer(Int64(bitPattern: number))
            case 2, 3:
                guard let count = takeNumber(bytes: 4), let content = take(Int(count)) else { return nil }
                values[column] = .bytes(Array(content))
            default: return nil
            }
        }
        return (table, values)
    }
}
