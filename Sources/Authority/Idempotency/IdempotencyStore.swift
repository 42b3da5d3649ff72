import CountersignWire

/// What became of requests with an `Idempotency-Key`, so that a second copy is answered and not done again.
package protocol IdempotencyStore: Sendable {
    /// Marks the request as begun, durably, unless its key is there, or there is no room for it: what is there is answered all
    /// the same. Where there is none for a holder of few keys, old ones of the holder of most are forgotten
    /// (``IdempotencyBounds/displaceable(at:)``).
    func begin(_ request: IdempotentRequest, within bounds: IdempotencyBounds) throws(Fault) -> IdempotencyState
    /// Keeps the answer of a request that was begun.
    func finish(_ request: IdempotentRequest, _ answer: StoredAnswer) throws(Fault)
    /// The backend was not reached: the request may be begun again.
    func abandon(_ request: IdempotentRequest) throws(Fault)
    /// Forgets what was begun before that time, at most so many.
    func forgetRequests(before time: Int64, limit: Int) throws(Fault) -> Int
}

package struct IdempotentRequest: Sendable, Equatable {
    package var scope: IdempotencyScope
    /// Who keeps the key; its account's, where it has one.
    package var holder: IdempotencyHolder
    /// SHA-256 of the `Idempotency-Key`.
    package var key: [UInt8]
    /// SHA-256 of method, target and what else makes the request this one.
    package var digest: [UInt8]
    /// Whole Unix seconds.
    package var begun: Int64

    /// `address` is where a caller without a session calls from.
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
    /// It is ours to do.
    case begun
    /// Begun before, by whoever; how it ended is not known.
    case unfinished
    case finished(StoredAnswer)
    /// The key was used for another request.
    case otherRequest
    /// As much is remembered as may be, of its scope or in all.
    case full
}

/// An answer of the backend, to be given again.
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
