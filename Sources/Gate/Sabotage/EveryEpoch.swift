#if SABOTAGE
    import CountersignSchemes
    import CountersignSeal
    import CountersignWire
    import Synchronization

    /// Finds a session by the keys of all the epochs that it has been asked for, and lets none of those run out.
    package struct EveryEpoch: SessionSource {
        private let inner: any SessionSource
        // For the gates of all loops: which of them a request comes to is chance.
        private static let seen = Mutex<[SessionToken: Found]>([:])

        private struct Found: Sendable {
            let session: Session
            let key: SigningKey
        }

        package init(_ inner: any SessionSource) { self.inner = inner }

        nonisolated(nonsending) package func session(
            for token: SessionToken
        ) async throws(Fault) -> (Session, SigningKey)? {
            guard let (session, key) = try await inner.session(for: token) else {
                return EveryEpoch.seen.withLock { $0[token] }.map { ($0.session, $0.key) }
            }
            let lasting = session.lasting
            EveryEpoch.seen.withLock { $0[token] = Found(session: lasting, key: key) }
            return (session.edition == .previous ? lasting : session, key)
        }

        nonisolated(nonsending) package func session(bearing token: Span<UInt8>) async throws(Fault) -> Session? {
            try await inner.session(bearing: token)
        }

        nonisolated(nonsending) package func deviceKey(of id: SessionID) async throws(Fault) -> P256Point? {
            try await inner.deviceKey(of: id)
        }

        package func noteUse(of session: Session, at now: Int64) { inner.noteUse(of: session, at: now) }
    }

    extension Session {
        fileprivate var lasting: Session {
            Session(
                id: id, kind: kind, epoch: epoch, account: account, app: app, platform: platform, edition: .previous,
                expires: .max, idleEnd: idleEnd, end: end)
        }
    }
#endif
