/// Lists what the database contains without a tag and a digest, and why: what else authenticates it, or what
/// bounds the damage that a writer to the database can do there. A test fails for a table that is neither
/// here nor in ``AuthenticatedTable/all``.
extension AuthenticatedTable {
    /// Reasons by the names of tables.
    package static let exemptions = both.merging(sqliteOnly) { $1 }.merging(postgreSQLOnly) { $1 }

    private static let both = [
        "row_digest": "Each digest is sealed, and the sealed summary has its random id.",
        "audit": "The chain of tags authenticates each record, and the head the number of records.",
        "revision": "A hint. If it is set back, other processes may not see changes until they restart.",
        "session_change": "The next number is above those of the sessions' rows, which are authenticated.",
        "webhook_account": "Counts and a time. False ones withhold an account's events for up to an hour, or "
            + "send them.",
        "webhook_dropped": "Counts, which decide nothing. False ones mislead about what was dropped.",
        "meter": "Counts, which decide nothing. False ones mislead the operator who retires a release.",
        "idempotent_request": "The response is sealed for one caller and key. Deleting a row or putting it "
            + "back affects only a copy by the same caller: it is executed again, or gets the "
            + "earlier response. A digest would be sealed twice for each keyed request.",
        "idempotent_use": "Counts for bounds. False ones refuse keyed requests, or allow more rows.",
    ]

    private static let sqliteOnly = [
        "sqlite_sequence": "The last number of a delivery. Each delivery has a tag of its own."
    ]

    private static let postgreSQLOnly = [
        "layout": "The record of the schema is sealed, and the schema is compared with a constant.",
        "writing": "A lock. A false level stops all writers.",
        "generation": "A hint for nodes, like `revision`.",
        "node": "Leases. False ones stop nodes; each node verifies its own master key.",
        "pending_login": "Each state is sealed. If one is deleted, the login must be started again.",
        "pending_login_count": "A count for the bound. A false one ends logins that have begun.",
        "login_limit": "Allowances. If set back, they allow more guesses, each of which costs the work of a "
            + "login. A digest would make each login wait for the disk.",
    ]
}

extension MetaName {
    /// Why the value's row has no tag and is in no digest; nil if it has both.
    package var exemption: String? {
        switch self {
        case .masterKeyCheck, .masterKeyNextCheck:
            "It is sealed under the master key, and contains the key by which rows are verified."
        case .auditHead: "It has a MAC, and the sealed summary of all digests contains its record."
        case .restoredInPlace: "It is sealed under a key of the rows, and the sealed summary has its time."
        case .reportedHead: "It is sealed under a key of the rows."
        case .sealSlot, .replayFile, .replayEpoch, .replayConfirmation, .sharedSettings, .answerKey,
            .assertionKeys, .opaqueKeys, .registrationKey, .bearerKey, .tombstoneKey, .pinManifests,
            .webhooks, .webhookKeys, .webhookStages, .meterBegan, .writeCheck, .rowsAccepted, .movedTo,
            .movedFrom:
            nil
        }
    }
}
