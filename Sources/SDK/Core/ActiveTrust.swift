import CountersignMemory
import CountersignTransport
import CountersignTrust

/// The trust that requests use: the built-in one, or that of a newer manifest.
final class ActiveTrust: Sendable {
    private let builtIn: Trust
    /// Nil if the trust cannot be replaced.
    private let keeper: TrustKeeper?
    private let carrier: any RequestTransport
    private let origin: Origin
    private struct State {
        var generation: Int
        /// Read for each request; changes only with the trust.
        var isPinned: Bool
    }

    private let state: Locked<State>

    /// For requests to `origin`.
    init(builtIn: Trust, keeper: TrustKeeper?, carrier: any RequestTransport, for origin: Origin) {
        (self.builtIn, self.keeper, self.carrier, self.origin) = (builtIn, keeper, carrier, origin)
        let current = keeper?.current
        state = Locked(
            State(
                generation: current?.number ?? 0,
                isPinned: ActiveTrust.isPinned(origin, by: current?.trust ?? builtIn)))
    }

    /// Why the stored manifest was not adopted at the start.
    var discarded: ManifestError? { keeper?.discarded }

    /// Whether the client accepts only servers with a pinned key or certificate.
    var isPinned: Bool { state.with { $0.isPinned } }

    private static func isPinned(_ origin: Origin, by trust: Trust) -> Bool {
        origin.security == .tls && trust.isPinned(origin.host)
    }

    /// Adopts a manifest and returns the version that is in force from now on. Cuts every connection that was
    /// made before.
    func adopt(_ manifest: [UInt8], at time: Int64) throws(CountersignError) -> Int {
        guard let keeper else {
            throw .misuse("pins: CountersignOptions.pinUpdates names no key that may replace them")
        }
        do throws(ManifestError) {
            let generation = try keeper.takeUp(manifest, at: time)
            let isPinned = ActiveTrust.isPinned(origin, by: generation.trust)
            state.with { now in
                // Of two simultaneous manifests the newer one stays, whichever comes last.
                guard generation.number > now.generation else { return }
                carrier.replaceTrust(by: generation.trust)
                now = State(generation: generation.number, isPinned: isPinned)
            }
            return generation.version
        } catch {
            throw .manifest(error)
        }
    }

    /// A keeper for the signers in the options; replaces the built-in trust at once if a stored manifest is
    /// newer.
    static func keeper(
        builtIn: Trust, updates: PinUpdates, for origin: Origin
    ) throws(CountersignError) -> TrustKeeper? {
        guard case .signed(let signers) = updates else { return nil }
        do throws(ManifestError) {
            return try TrustKeeper(
                builtIn: builtIn, version: signers.version, app: signers.app, keys: signers.keys,
                store: signers.store, covering: origin.security == .tls ? origin.host : nil)
        } catch {
            throw .manifest(error)
        }
    }
}
