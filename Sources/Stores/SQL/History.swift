import CountersignAuthority
import CountersignWire

extension SQLStore {
    package func state(askingForAuditRecord number: Int64) throws(OperationalError) -> StoreState {
        try read(whenEmpty: StoreState()) { (database) throws(OperationalError) in
            try database.state(askingForAuditRecord: number)
        }
    }

    package func clock() throws(OperationalError) -> Int64? {
        guard case .server = backing else { return nil }
        return try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try database.integer("SELECT \(NodeRows.now)")
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
        let states = try rows(
            """
            SELECT \(transactions), (SELECT value FROM row_digest WHERE name = '\(RowSummary.name)'),
                (SELECT value FROM meta WHERE name = '\(MetaName.reportedHead.rawValue)'),
                (SELECT value FROM meta WHERE name = '\(MetaName.restoredInPlace.rawValue)'),
                (SELECT tag FROM audit WHERE number = ?)
            """, binding: .integer(number)
        ) {
            var state = StoreState()
            state.transactions = $0.integer(0)
            state.summary = $0.isNull(1) ? nil : $0.blob(1)
            state.reported = $0.isNull(2) ? nil : $0.blob(2)
            state.restored = $0.isNull(3) ? nil : $0.blob(3)
            state.asked = $0.isNull(4) ? nil : AuditHead(number: number, tag: $0.blob(4))
            return state
        }
        return states.first ?? StoreState()
    }
}
