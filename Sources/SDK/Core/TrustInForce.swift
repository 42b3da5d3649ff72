import CountersignMemory
import CountersignTransport
import CountersignTrust

/// The trust that requests go under: what the client was made with, or a manifest's that is newer.
final class TrustInForce: Sendable {
    private let builtIn: Trust
    /// Nil where nobody may replace it.
    private let keeper: TrustKeeper?
    private let carrier: any Carrier
    private let origin: Origin
    private struct InForce {
        var generation: Int
        /// Asked for each request, and other only with another trust.
        var isPinned: Bool
    }

    private let inForce: Locked<InForce>

    /// For requests to `origin`.
    init(_ builtIn: Trust, _ keeper: TrustKeeper?, _ carrier: any Carrier, for origin: Origin) {
        (self.builtIn, self.keeper, self.carrier, self.origin) = (builtIn, keeper, carrier, origin)
        let current = keeper?.current
        inForce = Locked(
            InForce(
                generation: current?.number ?? 0, isPinned: TrustInForce.pins(origin, current?.trust ?? builtIn)))
    }

    /// Whether only the holder of a key that was named is taken for the server.
    var isPinned: Bool { inForce.with { $0.isPinned } }

    private static func pins(_ origin: Origin, _ trust: Trust) -> Bool {
        origin.security == .tls && trust.isPinned(origin.host)
    }

    /// The version of the manifest that is in force from now on. Every connection that was made before is cut.
    func takeUp(_ manifest: [UInt8], at time: Int64) throws(CountersignError) -> Int {
        guard let keeper else { throw .misuse("pins: CountersignOptions.pinUpdates names nobody who may replace them") }
        do throws(ManifestProblem) {
            let generation = try keeper.takeUp(manifest, at: time)
            let isPinned = TrustInForce.pins(origin, generation.trust)
            inForce.with { now in
                // Of two at once the newer one stays, whichever comes here last.
                guard generation.number > now.generation else { return }
                carrier.replaceTrust(by: generation.trust)
                now = InForce(generation: generation.number, isPinned: isPinned)
            }
            return generation.version
        } catch {
            throw .manifest(error)
        }
    }

    /// A keeper for whom the options name; the built-in trust is replaced at once where one that is kept is newer.
    static func keeper(_ builtIn: Trust, _ updates: PinUpdates) throws(CountersignError) -> TrustKeeper? {
        guard case .signed(let signers) = updates else { return nil }
        do throws(ManifestProblem) {
            return try TrustKeeper(
                builtIn: builtIn, version: signers.version, app: signers.app, keys: signers.keys, store: signers.store)
        } catch {
            throw .manifest(error)
        }
    }
}
