import CountersignClient
import CountersignTransport
import CountersignTrust

/// The source of replacement pins while the app runs. Source: docs/protocol.md, "Pin manifests".
public enum PinUpdates: Sendable {
    /// None: the client keeps its built-in pins.
    case none
    /// The holders of the offline keys.
    case signed(Signers)

    /// The keys whose manifests the client accepts.
    public struct Signers: Sendable {
        /// The app that a manifest must be for.
        public var app: String
        /// Ed25519 public keys of 32 bytes: at least the one in use and the next one.
        public var keys: [[UInt8]]
        /// The version of the manifest that the client's built-in trust corresponds to: the client refuses
        /// older ones. 0 if it is older than all of them.
        public var version: Int
        /// Where the client stores the last manifest.
        public var store: any ManifestStore

        /// `store` is usually a `ManifestFile` in the app's own folder.
        public init(app: String, keys: [[UInt8]], version: Int = 0, store: any ManifestStore) {
            self.app = app
            self.keys = keys
            self.version = version
            self.store = store
        }
    }
}

extension CountersignClient {
    /// Why the stored set of pins was not adopted when the client was made; nil if it was, or there was none.
    /// The built-in set is in force until ``fetchPins()`` or ``updatePins(_:)`` brings a newer one.
    public var discardedPins: ManifestError? { core.trust.discarded }

    /// Adopts a signed set of pins, as `countersign pins sign` makes it, and cuts every connection that was
    /// made under the old one. Returns its version. On an error the old pins stay in force. Source:
    /// docs/protocol.md, "Pin manifests".
    @discardableResult
    public func updatePins(_ manifest: [UInt8]) throws(CountersignError) -> Int {
        // An unreadable vault is no reason to go on trusting a key that was lost.
        let now = (try? core.environment.now()) ?? core.environment.time.now
        let version = try core.trust.adopt(manifest, at: now)
        core.events.tell(.pinsReplaced(version: version))
        return version
    }

    /// Fetches the app's signed set of pins from the server, and adopts it if it is newer. Returns the
    /// version that is in force from now on; nil if the server has no newer one. It does not matter which
    /// server delivers it: the offline key's signature counts.
    @discardableResult
    public func fetchPins() async throws(CountersignError) -> Int? {
        guard case .signed(let signers) = core.options.pinUpdates else {
            throw .misuse("pins: CountersignOptions.pinUpdates names no key that may replace them")
        }
        let path = "\(core.options.routes)/pins/\(signers.app)"
        let manifest: [UInt8]
        do throws(TransportError) {
            let answer = try await core.context.carrier.send(
                OutgoingRequest("GET", origin: core.base.origin, target: path))
            guard answer.status == 200 else { return nil }
            manifest = try await answer.body.collect(upTo: SignedManifest.longest)
        } catch {
            throw CountersignError(error)
        }
        do throws(CountersignError) {
            return try updatePins(manifest)
        } catch {
            guard case .manifest(.notNewer) = error else { throw error }
            return nil
        }
    }
}
