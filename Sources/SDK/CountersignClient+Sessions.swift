import CountersignClient
import CountersignWire

extension CountersignClient {
    /// One of an account's sessions, as its owner may see it.
    public struct Session: Sendable, Hashable {
        /// Shown to people; opens nothing.
        public let id: String
        /// `phone`, `desktop`…
        public let deviceKind: String
        /// As the device called itself.
        public let deviceName: String
        /// Whole Unix seconds.
        public let created: Int64
        /// The last login or refresh; whole Unix seconds.
        public let used: Int64
        /// Where its device says that it keeps its keys: `secure-enclave`, `tpm`, `software`. Nil where it
        /// has not said, and from servers that do not ask. The device's word alone.
        public let keyStorage: String?
        /// Whether it is this client's own.
        public let isCurrent: Bool

        init(_ entry: AccountSessions.Entry) {
            id = entry.id.description
            deviceKind = entry.deviceClass
            deviceName = entry.deviceName
            created = entry.created
            used = entry.used
            keyStorage = entry.keyStorage
            isCurrent = entry.isCurrent
        }
    }

    /// Those of the account that live; of many, the newest.
    public func sessions() async throws(CountersignError) -> [Session] {
        try await core.passGate()
        return try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            try await AccountSessions(installation, way).list()
        }.map(Session.init)
    }

    /// Ends another one of the account's.
    public func endSession(_ id: String) async throws(CountersignError) {
        guard let session = SessionID(id) else { throw .misuse("session: expected an id as sessions() has it") }
        try await core.passGate()
        try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            try await AccountSessions(installation, way).end(session)
        }
    }

    /// Asks the authority for this session, and renews it where its token has run out: for HTTP stacks that were given a
    /// ``SignedRequest`` and met `token-expired`. Throws ``CountersignError/signedOut(_:)`` where it is over.
    @discardableResult
    public func confirmSession() async throws(CountersignError) -> Session {
        try await core.passGate()
        return try await confirmAtTheGate()
    }

    /// The same, for the gate itself.
    @discardableResult
    func confirmAtTheGate() async throws(CountersignError) -> Session {
        let current = try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            try await AccountSessions(installation, way).current()
        }
        return Session(current.entry)
    }
}
