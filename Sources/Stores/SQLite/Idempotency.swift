import CountersignAuthority
import CountersignWire

extension SQLiteStore {
    package func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) throws(Fault) -> IdempotencyState {
        try write { (database) throws(Fault) in
            if let state = try SQLiteStore.state(of: request, in: database) { return state }
            switch try SQLiteStore.room(for: request, within: bounds, in: database) {
            case .free: break
            case .used: return .full
            case .crowded:
                guard try SQLiteStore.makeRoom(for: request, within: bounds, in: database) else { return .full }
            }
            let network: SQLValue =
                switch request.holder {
                case .account: .null
                case .network: .text(request.holder.description)
                }
            try database.run(
                "INSERT INTO idempotent_request (scope, network, key, digest, begun) VALUES (?, ?, ?, ?, ?)",
                .text(request.scope.description), network, .blob(request.key), .blob(request.digest),
                .integer(request.begun))
            return .begun
        }
    }

    /// What is there of it; nil for nothing.
    private static func state(of request: IdempotentRequest, in database: Database) throws(Fault) -> IdempotencyState? {
        try database.rows(
            "SELECT digest, status, fields, body FROM idempotent_request WHERE scope = ? AND key = ?",
            .text(request.scope.description), .blob(request.key)
        ) { (row) throws(Fault) -> IdempotencyState in
            guard row.blob(0) == request.digest else { return .otherRequest }
            guard !row.isNull(1) else { return .unfinished }
            guard let answer = answer(row) else {
                throw Rows.unreadable("idempotent request of", request.scope.description, database)
            }
            return .finished(answer)
        }.first
    }

    private static func room(
        for request: IdempotentRequest, within bounds: IdempotencyBounds, in database: Database
    ) throws(Fault) -> IdempotencyBounds.Room {
        let (scope, holder) = (request.scope.description, request.holder.description)
        let amounts = try database.rows(
            "SELECT owner, keys, bytes FROM idempotent_use WHERE owner IN (?, ?, 'account', 'release')",
            .text(scope), .text(holder)
        ) { ($0.text(0), KeptAmount(keys: Int($0.integer(1)), bytes: Int($0.integer(2)))) }
        func amount(of owner: String) -> KeptAmount { amounts.first { $0.0 == owner }?.1 ?? .none }
        let kinds = IdempotencyScope.Kind.allCases.map { ($0, amount(of: $0.rawValue)) }
        return bounds.room(
            for: request.scope, own: amount(of: scope), held: amount(of: holder),
            kinds: Dictionary(uniqueKeysWithValues: kinds))
    }

    /// Forgets the oldest finished requests of who holds most, among the networks where `request` has no
    /// session: what sessions keep gives way to sessions alone. False where there is none that may be
    /// forgotten, or that was not enough.
    private static func makeRoom(
        for request: IdempotentRequest, within bounds: IdempotencyBounds, in database: Database
    ) throws(Fault) -> Bool {
        for holder in try heaviest(beside: request, within: bounds, in: database) {
            let oldest = try database.integer(
                """
                SELECT begun FROM idempotent_request
                WHERE coalesce(network, scope) = ? AND status IS NOT NULL ORDER BY begun LIMIT 1
                """, .text(holder))
            // A holder of unfinished requests alone does not stop this; one of young requests does.
            guard let oldest else { continue }
            let limit = bounds.displaceable(at: request.begun)
            guard oldest < limit else { return false }
            try database.run(
                """
                DELETE FROM idempotent_request WHERE rowid IN (
                    SELECT rowid FROM idempotent_request
                    WHERE coalesce(network, scope) = ? AND begun < ? AND status IS NOT NULL
                    ORDER BY begun LIMIT ?)
                """, .text(holder), .integer(limit), .integer(Int64(IdempotencyBounds.displacedAtOnce)))
            guard case .free = try room(for: request, within: bounds, in: database) else { return false }
            return true
        }
        return false
    }

    /// The holders of most, beyond few keys; some of them.
    private static func heaviest(
        beside request: IdempotentRequest, within bounds: IdempotencyBounds, in database: Database
    ) throws(Fault) -> [String] {
        let words: [String] =
            switch request.holder {
            case .account: [IdempotencyScope.Kind.account.rawValue, IdempotencyHolder.network]
            case .network: [IdempotencyHolder.network]
            }
        var found: [(owner: String, weight: Int64)] = []
        for word in words {
            found += try database.rows(
                """
                SELECT owner, max(keys * 4096, bytes) FROM idempotent_use
                WHERE substr(owner, 1, 7) = ? AND max(keys * 4096, bytes) > ? AND +owner <> ?
                ORDER BY max(keys * 4096, bytes) DESC LIMIT 8
                """, .text(word), .integer(Int64(bounds.fewKeys * IdempotencyBounds.bytesOfKey)), .text(word)
            ) { ($0.text(0), $0.integer(1)) }
        }
        return found.sorted { $0.weight > $1.weight }.map(\.owner)
    }

    package func finish(_ request: IdempotentRequest, _ answer: StoredAnswer) throws(Fault) {
        try write { (database) throws(Fault) -> Void in
            let fields = answer.fields.flatMap { [Array($0.name.utf8), $0.value] }
            // Only the beginning that was ours: another's, after this one was forgotten, has an answer of its own.
            try database.run(
                """
                UPDATE idempotent_request SET status = ?, fields = ?, body = ?
                WHERE scope = ? AND key = ? AND digest = ? AND begun = ? AND status IS NULL
                """, .integer(Int64(answer.status)), .blob(ByteStrings.encode(fields)), .blob(answer.body),
                .text(request.scope.description), .blob(request.key), .blob(request.digest), .integer(request.begun))
        }
    }

    package func abandon(_ request: IdempotentRequest) throws(Fault) {
        try write { (database) throws(Fault) -> Void in
            try database.run(
                """
                DELETE FROM idempotent_request
                WHERE scope = ? AND key = ? AND digest = ? AND begun = ? AND status IS NULL
                """, .text(request.scope.description), .blob(request.key), .blob(request.digest),
                .integer(request.begun))
        }
    }

    package func forgetRequests(before time: Int64, limit: Int) throws(Fault) -> Int {
        try write { (database) throws(Fault) in
            try database.run(
                """
                DELETE FROM idempotent_request WHERE rowid IN (
                    SELECT rowid FROM idempotent_request WHERE begun < ? ORDER BY begun LIMIT ?)
                """, .integer(time), .integer(Int64(limit)))
        }
    }

    /// Of columns 1 to 3: status, fields, body.
    private static func answer(_ row: borrowing Statement) -> StoredAnswer? {
        guard let parts = ByteStrings.decode(row.blob(2)), parts.count.isMultiple(of: 2) else { return nil }
        let fields = stride(from: 0, to: parts.count, by: 2).map {
            StoredAnswer.Field(name: String(decoding: parts[$0], as: UTF8.self), value: parts[$0 + 1])
        }
        return StoredAnswer(status: Int(row.integer(1)), fields: fields, body: row.blob(3))
    }
}
