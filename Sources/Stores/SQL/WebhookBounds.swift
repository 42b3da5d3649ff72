import CountersignAuthority
import CountersignGate
import CountersignWire

/// Counts the use of the outbox, in the transaction that adds to it, and the deliveries that were dropped.
extension SQLStore {
    static func webhookShares(in database: Database) throws(OperationalError) -> WebhookShares {
        WebhookShares(among: try webhookSettings(in: database)?.endpoints.count ?? 1)
    }

    /// The count stops at `most`, so that its cost is bounded, too.
    static func waiting(
        for endpoint: String, upTo most: Int64, in database: Database
    ) throws(OperationalError) -> Int64 {
        try database.integer(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM webhook_delivery WHERE endpoint = ? AND given_up IS NULL LIMIT ?) AS waiting
            """, binding: .text(endpoint), .integer(most)) ?? 0
    }

    static func hasRoom(
        for urgency: WebhookUrgency, ofAccount number: Int64?, at endpoint: String,
        within shares: WebhookShares, in database: Database
    ) throws(OperationalError) -> Bool {
        let most = shares.endpoint(for: urgency)
        guard try waiting(for: endpoint, upTo: most, in: database) < most else { return false }
        guard let number, urgency != .administrative else { return true }
        let own = try database.integer(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM webhook_delivery
                WHERE endpoint = ? AND account = ? AND given_up IS NULL LIMIT ?) AS waiting
            """, binding: .text(endpoint), .integer(number), .integer(shares.account))
        return (own ?? 0) < shares.account
    }

    static func countDropped(
        _ count: Int64, of endpoint: String, at now: Int64, in database: Database
    ) throws(OperationalError) {
        try database.run(
            """
            INSERT INTO webhook_dropped (endpoint, count, last) VALUES (?, ?, ?)
            ON CONFLICT (endpoint) DO UPDATE
                SET count = webhook_dropped.count + excluded.count, last = excluded.last
            """, binding: .text(endpoint), .integer(count), .integer(now))
    }

    package func droppedDeliveries() throws(OperationalError) -> [WebhookDrops] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows("SELECT endpoint, count, last FROM webhook_dropped ORDER BY endpoint") {
                WebhookDrops(endpoint: $0.text(0), count: $0.integer(1), last: $0.integer(2))
            }
        }
    }

    /// Drops the oldest of an endpoint's dead letters beyond its share, after this delivery became one of
    /// them.
    static func trimDeadDeliveries(
        besides number: Int64, at now: Int64, in database: Database
    ) throws(OperationalError) {
        let endpoint = try database.rows(
            "SELECT endpoint FROM webhook_delivery WHERE number = ?", binding: .integer(number)
        ) { $0.text(0) }.first
        guard let endpoint else { return }
        let most = try webhookShares(in: database).endpoint
        let dead = try database.integer(
            "SELECT count(*) FROM webhook_delivery WHERE endpoint = ? AND given_up IS NOT NULL",
            binding: .text(endpoint))
        guard let dead, dead > most else { return }
        let dropped = try database.run(
            """
            DELETE FROM webhook_delivery WHERE number IN (
                SELECT number FROM webhook_delivery WHERE endpoint = ? AND given_up IS NOT NULL
                ORDER BY given_up, number LIMIT ?)
            """, binding: .text(endpoint), .integer(dead - most))
        try countDropped(Int64(dropped), of: endpoint, at: now, in: database)
    }
}

/// Withholds an account's events beyond a bound, and adds one event that states their number. Frequent
/// sign-ins of one user must not delay the events of others.
extension SQLStore {
    /// Counts the event for its account. Returns whether the event is withheld.
    static func isWithheld(
        _ notice: WebhookNotice, ofAccount number: Int64, by settings: WebhookSettings, in database: Database
    ) throws(OperationalError) -> Bool {
        // The store adds at most one of these two types in a window, or in an hour.
        guard notice.urgency != .administrative, notice.type != .eventsWithheld,
            notice.type != .accountGuessed
        else { return false }
        let column = notice.urgency == .security ? "security" : "routine"
        let row = try database.rows(
            "SELECT began, withheld, \(column) FROM webhook_account WHERE account = ?",
            binding: .integer(number)
        ) { (began: $0.isNull(0) ? nil : $0.integer(0), withheld: $0.integer(1), told: $0.integer(2)) }.first
        guard let row, let began = row.began, notice.time < began + WebhookShares.window else {
            if row?.began != nil {
                try tellWithheld(of: number, at: notice.time, by: settings, in: database)
            }
            try database.run(
                """
                INSERT INTO webhook_account (account, began, security, routine, withheld)
                VALUES (?, ?, ?, ?, 0)
                ON CONFLICT (account) DO UPDATE SET began = excluded.began, security = excluded.security,
                    routine = excluded.routine, withheld = 0
                """, binding: .integer(number), .integer(notice.time),
                .integer(column == "security" ? 1 : 0), .integer(column == "security" ? 0 : 1))
            return false
        }
        let isWithheld = row.told >= WebhookShares.accountEvents
        let counted = isWithheld ? "withheld" : column
        try database.run(
            "UPDATE webhook_account SET \(counted) = \(counted) + 1 WHERE account = ?",
            binding: .integer(number))
        return isWithheld
    }

    /// Ends the account's window, and adds an event that states how many events were withheld, if any.
    private static func tellWithheld(
        of number: Int64, at now: Int64, by settings: WebhookSettings?, in database: Database
    ) throws(OperationalError) {
        let row = try database.rows(
            """
            SELECT account.app, account.name, webhook_account.withheld, webhook_account.began,
                \(AuthenticatedTable.account.check)
            FROM webhook_account JOIN account ON account.number = webhook_account.account
            WHERE webhook_account.account = ?
            """, binding: .integer(number)
        ) {
            (
                app: AppName($0.text(0)),
                // An altered row would name an account of the attacker's choice.
                name: $0.isAuthentic(4) ? try? AccountName(checking: $0.blob(1).span) : nil,
                withheld: $0.integer(2), began: $0.integer(3)
            )
        }.first
        try endWindow(of: number, at: now, in: database)
        guard let settings, let row, row.withheld > 0 else { return }
        var notice = WebhookNotice(.eventsWithheld, at: now, app: row.app)
        notice.account = row.name
        notice.details = [("count", .integer(row.withheld)), ("since", .integer(row.began))]
        try tell(notice, ofAccount: number, by: settings, in: database)
    }

    /// Ends the account's window. The row remains while it has the time of an event about failed logins.
    private static func endWindow(
        of number: Int64, at now: Int64, in database: Database
    ) throws(OperationalError) {
        let deleted = try database.run(
            """
            DELETE FROM webhook_account
            WHERE account = ? AND (guessed IS NULL OR guessed <= ? OR guessed >= ?)
            """, binding: .integer(number), .integer(now - AccountGuesses.reportSeconds),
            .integer(now + AccountGuesses.reportSeconds))
        guard deleted == 0 else { return }
        try database.run(
            """
            UPDATE webhook_account SET began = NULL, security = 0, routine = 0, withheld = 0
            WHERE account = ?
            """, binding: .integer(number))
    }

    package func announceWithheld(at now: TrustedTime) throws(OperationalError) {
        let now = now.seconds
        let select = """
            SELECT account FROM webhook_account
            WHERE began <= ?1 OR (began IS NULL AND (guessed <= ?2 OR guessed >= ?3)) LIMIT 500
            """
        let bounds: [SQLValue] = [
            .integer(now - WebhookShares.window), .integer(now - AccountGuesses.reportSeconds),
            .integer(now + AccountGuesses.reportSeconds),
        ]
        let isDue = try read(whenEmpty: false) { (database) throws(OperationalError) in
            !(try database.rows(select, binding: bounds) { $0.integer(0) }).isEmpty
        }
        guard isDue else { return }
        try write { (database) throws(OperationalError) -> Void in
            let settings = try SQLStore.webhookSettings(in: database)
            for number in try database.rows(select, binding: bounds, read: { $0.integer(0) }) {
                try SQLStore.tellWithheld(of: number, at: now, by: settings, in: database)
            }
        }
    }
}

extension SQLStore {
    package func announceGuesses(
        _ failed: Int64, ofAccount number: Int64, at now: TrustedTime
    ) throws(OperationalError) -> Bool {
        let isReceived = try read(whenEmpty: false) { (database) throws(OperationalError) in
            try SQLStore.webhookSettings(in: database) != nil
        }
        guard isReceived else { return true }
        return try write { (database) throws(OperationalError) in
            try SQLStore.announceGuesses(failed, ofAccount: number, at: now.seconds, in: database)
        }
    }

    private static func announceGuesses(
        _ failed: Int64, ofAccount number: Int64, at now: Int64, in database: Database
    ) throws(OperationalError) -> Bool {
        let account = try database.rows(
            "SELECT app, name, \(AuthenticatedTable.account.check) FROM account WHERE number = ?",
            binding: .integer(number)
        ) {
            // An altered row would name an account of the attacker's choice.
            (
                app: AppName($0.text(0)),
                name: $0.isAuthentic(2) ? try? AccountName(checking: $0.blob(1).span) : nil
            )
        }.first
        guard let settings = try webhookSettings(in: database), let name = account?.name else { return true }
        var notice = WebhookNotice(.accountGuessed, at: now, app: account?.app)
        notice.account = name
        notice.details = [("count", .integer(failed))]
        guard !settings.endpoints(for: notice).isEmpty else { return true }
        let last = try database.integer(
            "SELECT guessed FROM webhook_account WHERE account = ? AND guessed IS NOT NULL",
            binding: .integer(number))
        // A time far ahead, by a clock that was wrong, holds nothing back.
        if let last, abs(now - last) < AccountGuesses.reportSeconds { return false }
        try database.run(
            """
            INSERT INTO webhook_account (account, began, security, routine, withheld, guessed)
            VALUES (?, NULL, 0, 0, 0, ?)
            ON CONFLICT (account) DO UPDATE SET guessed = excluded.guessed
            """, binding: .integer(number), .integer(now))
        try tell(notice, ofAccount: number, by: settings, in: database)
        return true
    }
}
