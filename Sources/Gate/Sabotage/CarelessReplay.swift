#if SABOTAGE
    import CountersignWire

    /// Remembers nothing.
    package struct NoReplayGuard: ReplayGuard {
        package init() {}

        nonisolated(nonsending) package func insert(_ entry: ReplayEntry) async throws(Refusal) {}
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
    }
#endif
