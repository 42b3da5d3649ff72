#if SABOTAGE
    import CountersignSchemes
    import CountersignWire

    /// Knows of no retirement.
    package struct UnretiredKeys: KeySource {
        private let inner: any KeySource

        package init(_ inner: any KeySource) { self.inner = inner }

        nonisolated(nonsending) package func key(for id: KeyID) async throws(Fault) -> ReleaseKey? {
            try await inner.key(for: id)?.altered(retirement: nil)
        }

        package func allowsSignedForms(at host: Span<UInt8>) throws(Fault) -> Bool {
            try inner.allowsSignedForms(at: host)
        }

        package func app(at host: Span<UInt8>) throws(Fault) -> HostedApp? { try inner.app(at: host) }

        nonisolated(nonsending) package func siblings(of release: ReleaseKey) async throws(Fault) -> [ReleaseKey] {
            try await inner.siblings(of: release)
        }

        nonisolated(nonsending) package func anyRelease(
            of app: String, on platform: String
        ) async throws(Fault) -> ReleaseKey? { try await inner.anyRelease(of: app, on: platform) }
    }

    extension KeySource {
        /// The release, as if its key had been made for that scheme and its policy named it.
        nonisolated(nonsending) func key(for id: KeyID?, madeFor scheme: SchemeName) async throws(Fault) -> ReleaseKey?
        {
            guard let id, let release = try await key(for: id) else { return nil }
            var policy = release.policy
            policy.schemes.insert(scheme)
            return release.altered(scheme: scheme, policy: policy, retirement: release.retirement)
        }
    }

    extension ReleaseKey {
        fileprivate func altered(
            scheme: SchemeName? = nil, policy: Policy? = nil, retirement: Retirement?
        ) -> ReleaseKey {
            ReleaseKey(
                id: id, app: app, platform: platform, version: version, scheme: scheme ?? self.scheme,
                policy: policy ?? self.policy, retirement: retirement, key: key, nextKey: nextKey)
        }
    }
#endif
