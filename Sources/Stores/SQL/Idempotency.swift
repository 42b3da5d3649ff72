import CountersignAuthority
import CountersignGate
import CountersignWire

extension SQLStore {
    package func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) throws(OperationalError) -> IdempotencyState {
        try write { (database) throws(OperationalError) in
            if let state = try SQLStore.state(of: request, in: database) { return state }
            guard try SQLStore.makeRoom(for: request, within: bounds, in: database) else { return .full }
            let network: SQLValue =
                switch request.holder {
                case .account: .null
                case .network: .text(request.holder.description)
                }
            try database.run(
                "INSERT INTO idempotent_request (scope, network, key, digest, begun) VALUES (?, ?, ?, ?, ?)",
                binding: .text(request.scope.description), network, .blob(request.key), .blob(request.digest),
                .integer(request.begun))
            return .begun
        }
    }

    /// The state of the request; nil if there is none.
    private static func state(of request: IdempotentRequest, in database: Database) throws(OperationalError)
        -> IdempotencyState?
    {
        try database.rows(
            "SELECT digest, status, fields, body FROM idempotent_request WHERE scope = ? AND key = ?",
            binding: .text(request.scope.description), .blob(request.key)
        ) { (row) throws(OperationalError) -> IdempotencyState in
            guard row.blob(0) == request.digest else { return .otherRequest }
            guard !row.isNull(1) else { return .unfinished }
            guard let answer = answer(row) else {
                throw ReleaseRows.unreadable(
                    "idempotent request of", named: request.scope.description, in: database)
            }
            return .finished(answer)
        }.first
    }

    private typealias Usage = (own: IdempotencyUsage, held: IdempotencyUsage, used: IdempotencyUsage)

    /// The usage of the request's scope, of its holder, and the total.
    private static func usage(
        of request: IdempotentRequest, in database: Database
    ) throws(OperationalError) -> Usage {
        let (scope, holder) = (request.scope.description, request.holder.description)
        let amounts = try database.rows(
            "SELECT owner, keys, bytes FROM idempotent_use WHERE owner IN (?, ?, 'account', 'release')",
            binding: .text(scope), .text(holder)
        ) { ($0.text(0), IdempotencyUsage(keys: Int($0.integer(1)), bytes: Int($0.integer(2)))) }
        func amount(of owner: String) -> IdempotencyUsage { amounts.first { $0.0 == owner }?.1 ?? .none }
        return (
            own: amount(of: scope), held: amount(of: holder),
            used: amount(of: IdempotencyScope.Kind.account.rawValue)
                + amount(of: IdempotencyScope.Kind.release.rawValue)
        )
    }

    private static func room(
        for request: IdempotentRequest, within bounds: IdempotencyBounds, in database: Database
    ) throws(OperationalError) -> IdempotencyBounds.Room {
        let usage = try usage(of: request, in: database)
        return bounds.room(for: request.scope, own: usage.own, held: usage.held, used: usage.used)
    }

    /// Forgets finished requests to make room for this one, as the request log does (``RequestLogIndex``).
    /// Returns false if there is still no room.
    private static func makeRoom(
        for request: IdempotentRequest, within bounds: IdempotencyBounds, in database: Database
    ) throws(OperationalError) -> Bool {
        // First within the account's bound, then within the total.
        for _ in 0..<2 {
            let room = try room(for: request, within: bounds, in: database)
            if case .free = room { return true }
            guard try displace(by: request, after: room, within: bounds, in: database) > 0 else {
                return room.admits
            }
        }
        return try room(for: request, within: bounds, in: database).admits
    }

    /// Deletes finished requests. If the account has reached its own bound, these are its own oldest
    /// requests; otherwise the oldest of the largest holder that has any, or the oldest of all. Returns how
    /// many it deleted.
    private static func displace(
        by request: IdempotentRequest, after room: IdempotencyBounds.Room, within bounds: IdempotencyBounds,
        in database: Database
    ) throws(OperationalError) -> Int {
        let limit = bounds.displaceable(at: request.begun)
        if room.isOfAccount {
            return try displace(of: request.scope.description, before: limit, in: database)
        }
        for holder in try heaviest(within: bounds, in: database) {
            let count = try displace(of: holder, before: limit, in: database)
            if count > 0 { return count }
        }
        return try database.run(
            """
            DELETE FROM idempotent_request WHERE rowid IN (
                SELECT rowid FROM idempotent_request WHERE begun < ? AND status IS NOT NULL
                ORDER BY begun LIMIT ?)
            """, binding: .integer(limit), .integer(Int64(IdempotencyBounds.displacedAtOnce)))
    }

    private static func displace(
        of holder: String, before limit: Int64, in database: Database
    ) throws(OperationalError) -> Int {
        try database.run(
            """
            DELETE FROM idempotent_request WHERE rowid IN (
                SELECT rowid FROM idempotent_request
                WHERE coalesce(network, scope) = ? AND begun < ? AND status IS NOT NULL
                ORDER BY begun LIMIT ?)
            """, binding: .text(holder), .integer(limit),
            .integer(Int64(IdempotencyBounds.displacedAtOnce)))
    }

    private static let mostCandidates = 16

    /// Some of the largest holders that exceed the usage of few keys, in order. Among equal ones, the holder
    /// with the oldest finished request is first.
    private static func heaviest(
        within bounds: IdempotencyBounds, in database: Database
    ) throws(OperationalError) -> [String] {
        var found: [(owner: String, weight: Int64, oldest: Int64)] = []
        for word in [IdempotencyScope.Kind.account.rawValue, IdempotencyHolder.network] {
            found += try database.rows(
                """
                SELECT owner, max(keys * 4096, bytes), (
                    SELECT min(begun) FROM idempotent_request
                    WHERE coalesce(network, scope) = owner AND status IS NOT NULL)
                FROM idempotent_use
                WHERE substr(owner, 1, 7) = ? AND max(keys * 4096, bytes) > ? AND owner || '' <> ?
                ORDER BY max(keys * 4096, bytes) DESC LIMIT ?
                """, binding: .text(word), .integer(Int64(bounds.fewKeys * IdempotencyBounds.bytesOfKey)),
                .text(word), .integer(Int64(mostCandidates))
            ) { ($0.text(0), $0.integer(1), $0.isNull(2) ? Int64.max : $0.integer(2)) }
        }
        return found.sorted { $0.weight == $1.weight ? $0.oldest < $1.oldest : $0.weight > $1.weight }
            .prefix(mostCandidates).map(\.owner)
    }

    package func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            var fields = ByteStringList.encode(answer.fields.flatMap { [Array($0.name.utf8), $0.value] })
            var body = answer.body
            let usage = try SQLStore.usage(of: request, in: database)
            if !bounds.keepsResponse(
                for: request.scope, own: usage.own, held: usage.held, used: usage.used)
            {
                (fields, body) = (ByteStringList.encode([]), [])
            }
            // Only the row that this call began: if it was deleted and the key begun again, the new request
            // stores its own answer.
            try database.run(
                """
                UPDATE idempotent_request SET status = ?, fields = ?, body = ?
                WHERE scope = ? AND key = ? AND digest = ? AND begun = ? AND status IS NULL
                """, binding: .integer(Int64(answer.status)), .blob(fields), .blob(body),
                .text(request.scope.description), .blob(request.key), .blob(request.digest),
                .integer(request.begun))
        }
    }

    package func abandon(_ request: IdempotentRequest) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            try database.run(
                """
                DELETE FROM idempotent_request
                WHERE scope = ? AND key = ? AND digest = ? AND begun = ? AND status IS NULL
                """, binding: .text(request.scope.description), .blob(request.key), .blob(request.digest),
                .integer(request.begun))
        }
    }

    package func forgetRequests(before time: TrustedTime, limit: Int) throws(OperationalError) -> Int {
        try write { (database) throws(OperationalError) in
            try database.run(
                """
                DELETE FROM idempotent_request WHERE rowid IN (
                    SELECT rowid FROM idempotent_request WHERE begun < ? ORDER BY begun LIMIT ?)
                """, binding: .integer(time.seconds), .integer(Int64(limit)))
        }
    }

    package func adopt(_ requests: [HeldRequest]) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            for held in requests { try SQLStore.adopt(held, in: database) }
        }
    }

    private static func adopt(_ held: HeldRequest, in database: Database) throws(OperationalError) {
        let request = held.request
        let (scope, key) = (SQLValue.text(request.scope.description), SQLValue.blob(request.key))
        try database.run(
            "DELETE FROM idempotent_request WHERE scope = ? AND key = ? AND begun < ?",
            binding: scope, key, .integer(request.begun))
        let network: SQLValue =
            switch request.holder {
            case .account: .null
            case .network: .text(request.holder.description)
            }
        try database.run(
            """
            INSERT INTO idempotent_request (scope, network, key, digest, begun) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT DO NOTHING
            """, binding: scope, network, key, .blob(request.digest), .integer(request.begun))
        guard let answer = held.answer else { return }
        // An answer under a master key that is no longer the store's is left out.
        let slot = try database.rows("SELECT value FROM meta WHERE name = 'seal-slot'") { $0.blob(0) }.first
        let isKept = answer.body.isEmpty || slot == nil || slot == [answer.body[0]]
        let fields = answer.fields.flatMap { [Array($0.name.utf8), $0.value] }
        try database.run(
            """
            UPDATE idempotent_request SET status = ?, fields = ?, body = ?
            WHERE scope = ? AND key = ? AND digest = ? AND begun = ? AND status IS NULL
            """, binding: .integer(Int64(answer.status)), .blob(ByteStringList.encode(isKept ? fields : [])),
            .blob(isKept ? answer.body : []), scope, key, .blob(request.digest), .integer(request.begun))
    }

    /// From columns 1 to 3: status, fields, body.
    static func answer(_ row: borrowing Statement) -> StoredAnswer? {
        guard let parts = ByteStringList.decode(row.blob(2)), parts.count.isMultiple(of: 2) else {
            return nil
        }
        let fields = stride(from: 0, to: parts.count, by: 2).map {
            StoredAnswer.Field(name: String(decoding: parts[$0], as: UTF8.self), value: parts[$0 + 1])
        }
        return StoredAnswer(status: Int(row.integer(1)), fields: fields, body: row.blob(3))
    }
}
