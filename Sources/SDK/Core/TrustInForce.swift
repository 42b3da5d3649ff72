import CountersignTransport
import CountersignTrust

/// The trust that requests go under: what the client was made with, or a manifest's that is newer.
final class TrustInForce: Sendable {
    private let builtIn: Trust
    /// Nil where nobody may replace it.
    private let keeper: TrustKeeper?
    private let carrier: any Carrier

    init(_ builtIn: Trust, _ keeper: TrustKeeper?, _ carrier: any Carrier) {
        (self.builtIn, self.keeper, self.carrier) = (builtIn, keeper, carrier)
    }

    var current: Trust { keeper?.current.trust ?? builtIn }

    /// Whether only the holder of a key that was named is taken for that server.
    func pins(_ origin: Origin) -> Bool { origin.security == .tls && current.isPinned(origin.host) }

    /// The version of the manifest that is in force from now on. Every connection that was made before is cut.
    func takeUp(_ manifest: [UInt8], at time: Int64) throws(ClientError) -> Int {
        guard let keeper else { throw .misuse("pins: ClientOptions.pinUpdates names nobody who may replace them") }
        do throws(ManifestProblem) {
            let generation = try keeper.takeUp(manifest, at: time)
            carrier.replaceTrust(by: generation.trust)
            return generation.version
        } catch {
            throw .manifest(error)
        }
    }

    /// A keeper for whom the options name; the built-in trust is replaced at once where one that is kept is newer.
    static func keeper(_ builtIn: Trust, _ updates: PinUpdates) throws(ClientError) -> TrustKeeper? {
        guard case .signed(let signers) = updates else { return nil }
        do throws(ManifestProblem) {
            return try TrustKeeper(
                builtIn: builtIn, version: signers.version, app: signers.app, keys: signers.keys, store: signers.store)
        } catch {
            throw .manifest(error)
        }
    }
}
