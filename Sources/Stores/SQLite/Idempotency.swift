import CountersignAuthority
import CountersignWire

extension SQLiteStore {
    package func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) throws(Fault) -> IdempotencyState {
        try write { (database) throws(Fault) in
            if let state = try SQLiteStore.state(of: request, in: database) { return state }
            guard try SQLiteStore.hasRoom(for: request.scope, bounds, in: database) else { return .full }
            try database.run(
                "INSERT INTO idempotent_request (scope, key, digest, begun) VALUES (?, ?, ?, ?)",
                .text(request.scope.description), .blob(request.key), .blob(request.digest), .integer(request.begun))
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

    private static func hasRoom(
        for scope: IdempotencyScope, _ bounds: IdempotencyBounds, in database: Database
    ) throws(Fault) -> Bool {
        var own = KeptAmount.none
        var kinds: [IdempotencyScope.Kind: KeptAmount] = [:]
        let amounts = try database.rows(
            "SELECT owner, keys, bytes FROM idempotent_use WHERE owner IN (?, 'account', 'release')",
            .text(scope.description)
        ) { ($0.text(0), KeptAmount(keys: Int($0.integer(1)), bytes: Int($0.integer(2)))) }
        for (owner, amount) in amounts {
            if let kind = IdempotencyScope.Kind(rawValue: owner) { kinds[kind] = amount } else { own = amount }
        }
        return bounds.hasRoom(for: scope, own: own, kinds)
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
