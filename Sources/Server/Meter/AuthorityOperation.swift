import CountersignMemory
import CountersignWire

/// What the authority does for accounts, as far as the metrics count it.
enum AuthorityOperation: Sendable, Hashable {
    case login
    /// The first of a login's two requests. Its refusals count to the login. Only the client sees that a
    /// password was wrong, and then does not finish.
    case loginStart
    case refresh
}

/// Counts logins and refreshes by outcome, over all loops, since the process began. Each takes far longer
/// than the lock.
final class AuthorityOperationCounter: Sendable {
    struct Subject: Sendable, Hashable {
        var operation: AuthorityOperation
        /// `succeeded`, the code of a refusal, or why the response was not delivered.
        var outcome: String
    }

    static let succeeded = "succeeded"
    private let cells = Locked<[Subject: UInt64]>([:])

    var counts: [Subject: UInt64] { cells.with { $0 } }

    /// `refusal` and `failure` are nil if the operation succeeded and its response was delivered.
    func count(_ operation: AuthorityOperation, refusal: Refusal.Code?, failure: DeliveryFailure?) {
        let outcome = failure?.rawValue ?? refusal?.rawValue
        let subject = Subject(
            operation: operation == .loginStart && outcome != nil ? .login : operation,
            outcome: outcome ?? AuthorityOperationCounter.succeeded)
        cells.with { $0[subject, default: 0] += 1 }
    }
}
