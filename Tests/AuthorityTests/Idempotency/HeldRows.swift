import CountersignAuthority
import CountersignWire

@testable import CountersignSQL

extension SQLStore {
    /// All keyed requests that are rows of the store, to compare with those of a log.
    func heldRequests() throws -> [HeldRequest] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows(
                """
                SELECT key, status, fields, body, digest, begun, scope, network FROM idempotent_request
                """
            ) { (row) throws(OperationalError) -> HeldRequest in
                guard let scope = IdempotencyScope(row.text(6)) else {
                    throw OperationalError(.failed, message: row.text(6))
                }
                var request = IdempotentRequest(
                    scope: scope, key: row.blob(0), digest: row.blob(4), begun: row.integer(5))
                if let network = IdempotencyHolder(network: row.text(7)) { request.holder = network }
                return HeldRequest(request, answer: row.isNull(1) ? nil : SQLStore.answer(row))
            }
        }
    }
}
