import CountersignAuthority
import CountersignWire

extension SQLStore {
    package func state(askingForAuditRecord number: Int64) throws(OperationalError) -> StoreState {
        try read(whenEmpty: StoreState()) { (database) throws(OperationalError) in
            try database.state(askingForAuditRecord: number)
        }
    }

    package func report(_ head: [UInt8]) throws(OperationalError) {
        if case .server(let server) = backing { try server.report(head) }
    }
}

extension Database {
    /// One statement, so that all of it is of one moment.
    func state(askingForAuditRecord number: Int64) throws(OperationalError) -> StoreState {
        let transactions: String
        switch driver {
        case .sqlite: transactions = "0"
        case .postgreSQL: transactions = "(SELECT number FROM writing)"
        }
        func value(of name: MetaName) -> String { "(SELECT value FROM meta WHERE name = '\(name.rawValue)')" }
        let states = try rows(
            """
            SELECT \(transactions), (SELECT value FROM row_digest WHERE name = '\(RowSummary.name)'),
                \(value(of: .restoredInPlace)), \(value(of: .reportedHead)), last.number, last.tag,
                asked.number, asked.record, asked.tag, (SELECT tag FROM audit WHERE number = ?)
            FROM (SELECT max(number) AS number FROM audit) AS highest
                LEFT JOIN audit AS last ON last.number = highest.number
                LEFT JOIN audit AS asked ON asked.number = ?
            """, binding: .integer(number - 1), .integer(number)
        ) {
            var state = StoreState()
            state.transactions = $0.integer(0)
            state.summary = $0.isNull(1) ? nil : $0.blob(1)
            state.restored = $0.isNull(2) ? nil : $0.blob(2)
            state.reported = $0.isNull(3) ? nil : $0.blob(3)
            state.last = $0.isNull(5) ? nil : AuditHead(number: $0.integer(4), tag: $0.blob(5))
            state.asked =
                $0.isNull(8)
                ? nil : AuditRow(number: $0.integer(6), record: $0.blob(7), tag: $0.blob(8))
            state.tagBeforeAsked = $0.isNull(9) ? nil : $0.blob(9)
            return state
        }
        return states.first ?? StoreState()
    }
}
