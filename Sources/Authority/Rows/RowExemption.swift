/// What is in the database without a tag and a digest, and why: what else authenticates it, or what bounds the
/// damage that a writer to the database can do there. A test fails for a table that is neither here nor in
/// ``AuthenticatedTable/all``.
extension AuthenticatedTable {
    /// Reasons by the names of tables.
    package static let exemptions = both.merging(sqliteOnly) { $1 }.merging(postgreSQLOnly) { $1 }

    private static let both = [
        "row_digest": "Each digest is sealed, and the sealed summary has the number of its changes.",
        "audit": "The chain of tags authenticates each record, and the head the number of records.",
        "revision": """
            A hint for other processes. Set back at each change, it delays what they read anew until they \
            start again.
            """,
        "session_change": "The next number is above that of every session's row, which is authenticated.",
        "meter": "Counts, which decide nothing: false ones mislead the operator who retires a release.",
        "account_code": "Each row has a tag of its own.",
        "account_verification": "Each row has a tag of its own.",
        "idempotent_request": """
            A digest would be sealed twice for each keyed request. The response is sealed, bound to the \
            caller and the key. A row that is deleted has the same caller's repetition done again; one that is \
            put back has it get the earlier response.
            """,
        "idempotent_use": "Counts for the bounds: false ones refuse keyed requests, or let rows take more room.",
    ]

    private static let sqliteOnly = [
        "sqlite_sequence": """
            The last number of a delivery. Set back, a delivery gets the number of one that is gone, and a \
            tag of its own.
            """
    ]

    private static let postgreSQLOnly = [
        "layout": "The record of the schema is sealed, and this build's schema is compared with a constant.",
        "writing": "A lock: no value of it is used, but for the level, whose fault stops all writers.",
        "generation": "A hint for nodes, like `revision`.",
        "node": "Leases: false ones stop nodes, and what a node says of its master key is sealed.",
        "pending_login": "Each state is sealed; one that is gone or put back fails or is started again.",
        "pending_login_count": "A count for the bound: a false one ends logins that have begun.",
        "login_limit": """
            Allowances for guesses, which a digest would have each login wait for. Set back, they allow more \
            guesses online; each costs the work of a login and is in the log.
            """,
    ]
}

extension MetaName {
    /// Why the value's row has neither a tag nor a place in the digest; nil if it has.
    package var exemption: String? {
        switch self {
        case .masterKeyCheck, .masterKeyNextCheck:
            "It is sealed under the master key, and contains the key by which rows are verified."
        case .auditHead: "It has a MAC, and the sealed summary of all digests has its number."
        case .sealSlot, .replayFile, .replayEpoch, .replayConfirmation, .sharedSettings, .answerKey,
            .assertionKeys, .opaqueKeys, .registrationKey, .bearerKey, .tombstoneKey, .pinManifests, .webhooks, .webhookKeys,
            .webhookStages, .meterBegan, .writeCheck, .rowsAccepted, .movedTo, .movedFrom:
            nil
        }
    }
}
