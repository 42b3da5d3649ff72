import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLStore {
    /// Adds an event to the outbox for each endpoint that receives it, in the transaction that causes it. The
    /// row's tag is made at the same time. The endpoints are not verified here: the sender drops a delivery
    /// to an endpoint that is not authentic when it is due.
    static func tell(
        _ notice: WebhookNotice, ofAccount number: Int64?, by settings: WebhookSettings,
        in database: Database
    ) throws(OperationalError) {
        let endpoints = settings.endpoints(for: notice)
        guard !endpoints.isEmpty else { return }
        if let number, try isWithheld(notice, ofAccount: number, by: settings, in: database) { return }
        let added = try add(notice, ofAccount: number, by: settings, in: database)
        if let number, added < endpoints.count {
            try countWithheld(1, ofAccount: number, at: notice.time, in: database)
        }
    }

    /// Returns the number of endpoints with room for the event.
    static func add(
        _ notice: WebhookNotice, ofAccount number: Int64?, by settings: WebhookSettings,
        in database: Database
    ) throws(OperationalError) -> Int {
        var added = 0
        let shares = WebhookShares(among: settings.endpoints.count)
        let id = WebhookNotice.makeID()
        let body = notice.body(id: id)
        for endpoint in settings.endpoints(for: notice) {
            guard
                try hasRoom(
                    for: notice.urgency, ofAccount: number, at: endpoint.id, within: shares, in: database)
            else {
                try countDropped(1, of: endpoint.id, at: notice.time, in: database)
                continue
            }
            try database.run(
                """
                INSERT INTO webhook_delivery (endpoint, event, account, created, due, attempts, urgency, body)
                VALUES (?, ?, ?, ?, ?, 0, ?, ?)
                """, binding: .text(endpoint.id), .text(id), .integer(number ?? 0), .integer(notice.time),
                .integer(notice.time), .integer(notice.urgency.rawValue), .blob(body))
            added += 1
        }
        return added
    }

    /// Nil without endpoints.
    static func webhookSettings(in database: Database) throws(OperationalError) -> WebhookSettings? {
        guard let stored = try value(of: .webhooks, in: database),
            let settings = WebhookSettings(document: stored), !settings.endpoints.isEmpty
        else { return nil }
        return settings
    }

    /// Tells of a change of the audit log, whose account is known by its name.
    static func tell(_ notice: WebhookNotice, in database: Database) throws(OperationalError) {
        guard let settings = try webhookSettings(in: database) else { return }
        var number: Int64?
        if let name = notice.account, let app = notice.app {
            number = try database.integer(
                "SELECT number FROM account WHERE app = ? AND name = ?", binding: .text(app.description),
                .text(name.description))
        }
        try tell(notice, ofAccount: number, by: settings, in: database)
    }

    /// Adds the event of a session's beginning or end. A session whose row was altered can also be ended. Its
    /// event has only the session's id, because it must not name the account that the altered row names.
    static func tell(
        _ type: WebhookEventType, of session: SessionID, at time: Int64, by actor: AuditActor? = nil,
        details: [(name: String, value: JSONValue)] = [], in database: Database
    ) throws(OperationalError) {
        guard let settings = try webhookSettings(in: database) else { return }
        let rows = try database.rows(
            """
            SELECT session.app, account.name, session.release, session.account,
                \(AuthenticatedTable.session.check), \(AuthenticatedTable.account.check)
            FROM session JOIN account ON account.number = session.account WHERE session.id = ?
            """, binding: .blob(session.bytes)
        ) { (row) -> (notice: WebhookNotice, account: Int64) in
            guard row.isAuthentic(4) else { return (WebhookNotice(type, at: time), row.integer(3)) }
            var notice = WebhookNotice(type, at: time, app: AppName(row.text(0)))
            notice.release = row.isNull(2) ? nil : KeyID(row.text(2))
            if row.isAuthentic(5) { notice.account = try? AccountName(checking: row.blob(1).span) }
            return (notice, row.integer(3))
        }
        guard case (var notice, let account)? = rows.first else { return }
        (notice.session, notice.actor, notice.details) = (session, actor, details)
        try tell(notice, ofAccount: account, by: settings, in: database)
    }
}

extension SQLStore {
    package func takeDelivery(
        dueAt now: Int64, leaving busy: Set<String>, for seconds: Int64
    ) throws(OperationalError) -> WebhookDelivery? {
        let others = busy.sorted().map { SQLValue.text($0) }
        let marks = repeatElement("?", count: others.count).joined(separator: ", ")
        let condition = others.isEmpty ? "" : "AND endpoint NOT IN (\(marks))"
        let select = """
            SELECT number FROM webhook_delivery WHERE given_up IS NULL AND due <= ? \(condition)
            ORDER BY urgency, due, number LIMIT 1
            """
        while true {
            // The search is outside the transaction, because all other changes wait for one.
            let found = try read(whenEmpty: nil) { (database) throws(OperationalError) -> Int64? in
                try database.rows(select, binding: [.integer(now)] + others) { $0.integer(0) }.first
            }
            guard let number = found else { return nil }
            let taken = try write { (database) throws(OperationalError) in
                try SQLStore.takeDelivery(number, dueAt: now, for: seconds, in: database)
            }
            // Another process may have been faster, or the row was altered.
            if let taken { return taken }
        }
    }

    /// Nil if another process has taken it, or if it is given up here because its row was altered.
    private static func takeDelivery(
        _ number: Int64, dueAt now: Int64, for seconds: Int64, in database: Database
    ) throws(OperationalError) -> WebhookDelivery? {
        let isDue = try database.integer(
            "SELECT 1 FROM webhook_delivery WHERE number = ? AND due <= ? AND given_up IS NULL",
            binding: .integer(number), .integer(now))
        guard isDue != nil else { return nil }
        let found = try deliveries(in: database, where: "WHERE number = ?", binding: [.integer(number)]).first
        guard let found, found.isAuthentic else {
            try buryAltered(number, at: now, in: database)
            return nil
        }
        try database.run(
            "UPDATE webhook_delivery SET due = ? WHERE number = ?", binding: .integer(now + seconds),
            .integer(number))
        return found.delivery
    }

    /// Gives up a row that another program has written or altered. It stays in the list, so that an operator
    /// sees it.
    private static func buryAltered(
        _ number: Int64, at now: Int64, in database: Database
    ) throws(OperationalError) {
        try database.run(
            "UPDATE webhook_delivery SET given_up = ?, failure = ? WHERE number = ?", binding: .integer(now),
            .text("the row was altered; it is not signed"), .integer(number))
    }

    private static func deliveries(
        in database: Database, where condition: String, binding values: [SQLValue]
    ) throws(OperationalError) -> [(delivery: WebhookDelivery, isAuthentic: Bool)] {
        try database.rows(
            """
            SELECT number, endpoint, event, created, attempts, body, failure, given_up,
                \(AuthenticatedTable.webhookDelivery.check)
            FROM webhook_delivery \(condition)
            """, binding: values
        ) {
            let delivery = WebhookDelivery(
                number: $0.integer(0), endpoint: $0.text(1), event: $0.text(2), created: $0.integer(3),
                attempts: $0.integer(4), body: $0.blob(5), failure: $0.isNull(6) ? nil : $0.text(6),
                givenUp: $0.isNull(7) ? nil : $0.integer(7))
            return (delivery, $0.isAuthentic(8))
        }
    }

    package func finishDelivery(_ number: Int64) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            try database.run("DELETE FROM webhook_delivery WHERE number = ?", binding: .integer(number))
        }
    }

    package func postponeDelivery(
        _ number: Int64, until due: Int64, because failure: String
    ) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            try database.run(
                "UPDATE webhook_delivery SET due = ?, attempts = attempts + 1, failure = ? WHERE number = ?",
                binding: .integer(due), .text(failure), .integer(number))
        }
    }

    package func buryDelivery(
        _ number: Int64, at now: Int64, because failure: String
    ) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            try database.run(
                """
                UPDATE webhook_delivery SET given_up = ?, attempts = attempts + 1, failure = ?
                WHERE number = ?
                """, binding: .integer(now), .text(failure), .integer(number))
            try SQLStore.trimDeadDeliveries(besides: number, at: now, in: database)
        }
    }

    package func add(_ delivery: WebhookDelivery) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            let shares = try SQLStore.webhookShares(in: database)
            guard
                try SQLStore.hasRoom(
                    for: .administrative, ofAccount: nil, at: delivery.endpoint, within: shares, in: database)
            else {
                throw OperationalError(
                    .failed,
                    message: """
                        webhook \(delivery.endpoint): \(shares.endpoint) deliveries wait for it already, the \
                        most allowed; nothing was added
                        """)
            }
            try database.run(
                """
                INSERT INTO webhook_delivery (endpoint, event, account, created, due, attempts, urgency, body)
                VALUES (?, ?, 0, ?, ?, 0, ?, ?)
                """, binding: .text(delivery.endpoint), .text(delivery.event), .integer(delivery.created),
                .integer(delivery.created), .integer(WebhookUrgency.administrative.rawValue),
                .blob(delivery.body))
        }
    }

    package func dropDeliveries(of endpoint: String) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            try database.run("DELETE FROM webhook_delivery WHERE endpoint = ?", binding: .text(endpoint))
            try database.run("DELETE FROM webhook_dropped WHERE endpoint = ?", binding: .text(endpoint))
        }
    }

    package func deadDeliveries(of endpoint: String?, limit: Int) throws(OperationalError)
        -> [WebhookDelivery]
    {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            let order = "ORDER BY given_up DESC, number DESC LIMIT ?"
            guard let endpoint else {
                return try SQLStore.deliveries(
                    in: database, where: "WHERE given_up IS NOT NULL \(order)",
                    binding: [.integer(Int64(limit))]
                ).map(\.delivery)
            }
            return try SQLStore.deliveries(
                in: database, where: "WHERE given_up IS NOT NULL AND endpoint = ? \(order)",
                binding: [.text(endpoint), .integer(Int64(limit))]
            ).map(\.delivery)
        }
    }

    package func reviveDeliveries(of event: String?, at now: Int64) throws(OperationalError) -> Int {
        try write { (database) throws(OperationalError) in
            let (condition, values): (String, [SQLValue]) =
                event.map { ("AND event = ?", [.text($0)]) } ?? ("", [])
            let endpoints = try database.rows(
                "SELECT DISTINCT endpoint FROM webhook_delivery WHERE given_up IS NOT NULL \(condition)",
                binding: values
            ) { $0.text(0) }
            let shares = try SQLStore.webhookShares(in: database)
            var count = 0
            for endpoint in endpoints {
                let waiting = try SQLStore.waiting(for: endpoint, upTo: shares.endpoint, in: database)
                count += try database.run(
                    """
                    UPDATE webhook_delivery SET given_up = NULL, attempts = 0, due = ? WHERE number IN (
                        SELECT number FROM webhook_delivery
                        WHERE endpoint = ? AND given_up IS NOT NULL \(condition)
                        ORDER BY urgency, given_up, number LIMIT ?)
                    """,
                    binding: [.integer(now), .text(endpoint)] + values + [.integer(shares.endpoint - waiting)]
                )
            }
            return count
        }
    }

    package func forgetDeadDeliveries(before time: TrustedTime) throws(OperationalError) {
        let isThere = try read(whenEmpty: false) { (database) throws(OperationalError) in
            try database.integer(
                "SELECT 1 FROM webhook_delivery WHERE given_up < ? LIMIT 1",
                binding: .integer(time.seconds)) != nil
        }
        guard isThere else { return }
        try write { (database) throws(OperationalError) -> Void in
            try database.run(
                "DELETE FROM webhook_delivery WHERE given_up < ?", binding: .integer(time.seconds))
        }
    }

    package func deliveryCounts() throws(OperationalError) -> WebhookCounts {
        try read(whenEmpty: WebhookCounts()) { (database) throws(OperationalError) in
            let rows = try database.rows(
                """
                SELECT count(*), (SELECT count(*) FROM webhook_delivery WHERE given_up IS NOT NULL),
                    min(created)
                FROM webhook_delivery WHERE given_up IS NULL
                """
            ) {
                WebhookCounts(
                    waiting: $0.integer(0), dead: $0.integer(1), oldest: $0.isNull(2) ? nil : $0.integer(2))
            }
            return rows.first ?? WebhookCounts()
        }
    }

    package func announceStages(at now: TrustedTime) throws(OperationalError) {
        let now = now.seconds
        let isDue = try read(whenEmpty: false) { (database) throws(OperationalError) in
            guard try SQLStore.webhookSettings(in: database) != nil else { return false }
            guard let last = try SQLStore.lastStages(in: database) else { return true }
            return try !SQLStore.stages(after: last, upTo: now, in: database).isEmpty
        }
        guard isDue else { return }
        try write { (database) throws(OperationalError) -> Void in
            guard let settings = try SQLStore.webhookSettings(in: database) else { return }
            let last = try SQLStore.lastStages(in: database) ?? now
            for change in try SQLStore.stages(after: last, upTo: now, in: database) {
                var notice = WebhookNotice(.stageReached, at: change.time, app: change.app)
                notice.release = change.release
                notice.details = [("stage", .string(change.stage.rawValue))]
                try SQLStore.tell(notice, ofAccount: nil, by: settings, in: database)
            }
            try SQLStore.set(.webhookStages, to: Array(String(now).utf8), in: database)
        }
    }

    private static func lastStages(in database: Database) throws(OperationalError) -> Int64? {
        try value(of: .webhookStages, in: database).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }

    private struct StageChange {
        let app: AppName
        let release: KeyID
        let stage: AppRelease.Stage
        /// Whole Unix seconds.
        let time: Int64
    }

    /// The stages of retirements that began in that time.
    private static func stages(
        after last: Int64, upTo now: Int64, in database: Database
    ) throws(OperationalError) -> [StageChange] {
        let rows = try database.rows(
            """
            SELECT app, key_id, warn_at, read_only_at, retired_at, \(AuthenticatedTable.release.check)
            FROM release
            WHERE (warn_at > ?1 AND warn_at <= ?2) OR (read_only_at > ?1 AND read_only_at <= ?2)
                OR (retired_at > ?1 AND retired_at <= ?2)
            """, binding: .integer(last), .integer(now)
        ) { row in
            let times = (2...4).map { row.isNull($0) ? nil : row.integer($0) }
            return (
                app: AppName(row.text(0)), release: row.isAuthentic(5) ? KeyID(row.text(1)) : nil,
                times: times
            )
        }
        var found: [StageChange] = []
        for row in rows {
            guard let app = row.app, let release = row.release else { continue }
            for (stage, time) in zip([AppRelease.Stage.warn, .readOnly, .retired], row.times) {
                guard let time, time > last, time <= now else { continue }
                found.append(StageChange(app: app, release: release, stage: stage, time: time))
            }
        }
        return found
    }
}
