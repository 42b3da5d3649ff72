#if SABOTAGE
    import CountersignSchemes
    import CountersignWire

    /// Remembers nothing.
    package struct NoReplayGuard: ReplayGuard {
        package init() {}

        nonisolated(nonsending) package func insert(_ entry: ReplayEntry) async throws(Refusal) {}

        nonisolated(nonsending) package func lookUp(_ entry: ReplayEntry) async throws(Refusal) {}
    }

    /// Leaves message-signatures to somebody who has spent their nonces earlier, and must not find them spent.
    package struct SpentEarlier: ReplayGuard {
        private let inner: any ReplayGuard

        package init(_ inner: any ReplayGuard) { self.inner = inner }

        nonisolated(nonsending) package func insert(_ entry: ReplayEntry) async throws(Refusal) {
            if entry.scheme != .messageSignatures { try await inner.insert(entry) }
        }

        nonisolated(nonsending) package func lookUp(_ entry: ReplayEntry) async throws(Refusal) {
            if entry.scheme != .messageSignatures { try await inner.lookUp(entry) }
        }
    }

    /// Lets in what the guard within cannot vouch for.
    package struct FailingOpen: ReplayGuard {
        private let inner: any ReplayGuard

        package init(_ inner: any ReplayGuard) { self.inner = inner }

        nonisolated(nonsending) package func insert(_ entry: ReplayEntry) async throws(Refusal) {
            do throws(Refusal) {
                try await inner.insert(entry)
            } catch {
                guard error.code == .unavailable else { throw error }
            }
        }

        nonisolated(nonsending) package func lookUp(_ entry: ReplayEntry) async throws(Refusal) {
            try await inner.lookUp(entry)
        }
    }
#endif
