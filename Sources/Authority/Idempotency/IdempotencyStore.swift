import CountersignGate
import CountersignWire

/// The stored outcomes of requests with an `Idempotency-Key`, so that a repeated request is answered and
/// not executed again. No function blocks its caller's thread.
package protocol IdempotencyStore: Sendable {
    /// Durably marks the request as begun, unless its key exists or there is no room for it; a request
    /// whose key exists is answered even without room. If a holder of few keys finds no room, old requests
    /// of the holder with the most are deleted (``IdempotencyBounds/displaceable(at:)``).
    func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) async throws(Refusal) -> IdempotencyState
    /// Keeps the answer of a request that was begun, or only its status if the bounds have no room for it:
    /// ``IdempotencyBounds/keepsResponse(for:own:held:used:)``. Later calls of this process find it. If it
    /// is lost with the process or the machine, the request reads as unfinished.
    func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) async throws(Refusal)
    /// Forgets a request that did not reach the backend: it may be begun again. If that is lost, the request
    /// reads as unfinished.
    func abandon(_ request: IdempotentRequest) async
    /// Forgets requests that began before that time, soon. Call it from a timer.
    func forget(before time: TrustedTime)
}

/// A store of keyed requests that can also be used without a task.
package protocol ImmediateIdempotencyStore: IdempotencyStore {
    /// As ``IdempotencyStore/begin(_:within:)``, but returns at once, and tells `receiver`.
    func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds,
        reportingTo receiver: any IdempotencyStateReceiver)
    /// As ``IdempotencyStore/finish(_:with:within:)``; false, and nothing is done, if the caller would have
    /// to wait.
    func finishIfReady(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) -> Bool
    func abandonAtOnce(_ request: IdempotentRequest)
}

/// Learns whether a request was begun.
package protocol IdempotencyStateReceiver: AnyObject, Sendable {
    /// Called once, on any thread; must return soon.
    func didBegin(_ result: Result<IdempotencyState, Refusal>)
}

/// The rows of keyed requests in a ``Store``.
package protocol IdempotencyTable: Sendable {
    /// As of ``IdempotencyStore``.
    func begin(_ request: IdempotentRequest, within bounds: IdempotencyBounds) throws(OperationalError)
        -> IdempotencyState
    func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) throws(OperationalError)
    func abandon(_ request: IdempotentRequest) throws(OperationalError)
    /// Deletes at most `limit` requests that began before that time; returns their number.
    func forgetRequests(before time: TrustedTime, limit: Int) throws(OperationalError) -> Int
    /// Takes over requests of another store, whatever the bounds: what is here already stays, except that an
    /// answer is added to a request without one, and a later beginning replaces an earlier one.
    func adopt(_ requests: [HeldRequest]) throws(OperationalError)
}

/// Keyed requests as rows of a ``Store``, in the transactions of its writer.
package struct StoredRequests: IdempotencyStore {
    /// Keys that one transaction deletes; other writers wait for it.
    private static let batchSize = 500

    private let writer: any StoreWriter

    package init(_ writer: any StoreWriter) { self.writer = writer }

    package func begin(
        _ request: IdempotentRequest, within bounds: IdempotencyBounds
    ) async throws(Refusal) -> IdempotencyState {
        try await writer.write { (store) throws(OperationalError) in
            try store.begin(request, within: bounds)
        }
    }

    package func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) async throws(Refusal) {
        try await writer.write { (store) throws(OperationalError) in
            try store.finish(request, with: answer, within: bounds)
        }
    }

    package func abandon(_ request: IdempotentRequest) async {
        try? await writer.write { (store) throws(OperationalError) in try store.abandon(request) }
    }

    /// In batches, so that other writers can run in between.
    package func forget(before time: TrustedTime) {
        let again = self
        writer.writeLater { (store) throws(OperationalError) in
            let forgotten = try store.forgetRequests(before: time, limit: StoredRequests.batchSize)
            if forgotten == StoredRequests.batchSize { again.forget(before: time) }
        }
    }
}

package struct IdempotentRequest: Sendable, Equatable {
    package var scope: IdempotencyScope
    /// The party that the key counts for: its account, or the caller's network.
    package var holder: IdempotencyHolder
    /// SHA-256 of the `Idempotency-Key`.
    package var key: [UInt8]
    /// SHA-256 of method, target and everything else that identifies the request.
    package var digest: [UInt8]
    /// Whole Unix seconds.
    package var begun: Int64

    /// `address` is the address of a caller without a session.
    package init(
        scope: IdempotencyScope, from address: ClientAddress = .unknown, key: [UInt8], digest: [UInt8],
        begun: Int64
    ) {
        self.scope = scope
        holder = IdempotencyHolder(of: scope, from: address)
        self.key = key
        self.digest = digest
        self.begun = begun
    }
}

package enum IdempotencyState: Sendable, Equatable {
    /// The request is new: the caller is to execute it.
    case begun
    /// The request was begun before; its outcome is not known.
    case unfinished
    case finished(StoredAnswer)
    /// The key was used for another request.
    case otherRequest
    /// The bound of the scope, the holder or all together is reached.
    case full
}

/// An answer of the backend, stored to be repeated.
package struct StoredAnswer: Sendable, Equatable {
    package var status: Int
    /// Names in lower case, as the backend sent them.
    package var fields: [Field]
    package var body: [UInt8]

    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: [UInt8]

        package init(name: String, value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    package init(status: Int, fields: [Field], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}
