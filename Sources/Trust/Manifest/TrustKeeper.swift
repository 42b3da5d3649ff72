import CountersignMemory

/// Where the last manifest that was taken up is kept.
public protocol ManifestStore: Sendable {
    /// The bytes last written; nil where there are none.
    func read() throws(ManifestProblem) -> [UInt8]?
    /// Takes the place of what was there. On return it is durable, and at every moment all of one or the other is there.
    func write(_ bytes: [UInt8]) throws(ManifestProblem)
}

/// Holds the trust that is in force: the one built into the app, or a manifest's that is newer.
///
/// The version in force only grows, across restarts too, and is durable before it counts. A manifest that runs out stays in
/// force until a newer one comes: to fall back would let anybody who holds back manifests bring back a key that was
/// replaced. `others` is the built-in trust's for good.
public final class TrustKeeper: Sendable {
    /// A trust, and how many there were before it.
    public struct Generation: Sendable {
        /// Grows with each change in this process, from 0 on.
        public let number: Int
        /// The version of the manifest it is from; of the built-in set, its floor.
        public let version: Int
        /// Till when its manifest wanted to be in force, whole Unix seconds; nil for the built-in set.
        public let validUntil: Int64?
        /// Whom to take for a server.
        public let trust: Trust
    }

    private let builtIn: Trust
    private let app: String
    private let keys: [[UInt8]]
    private let store: any ManifestStore
    private let state: Locked<Generation>
    /// Held while a manifest is taken up, disk and all, so that whoever only asks what is in force does not wait.
    private let turn = Locked(())

    /// Reads the store, and takes what it kept where that is newer than the built-in set.
    /// - Parameters:
    ///   - builtIn: what the app was built with.
    ///   - version: the manifest version that the built-in set stands for; older manifests are refused. 0 where it is
    ///     older than all of them.
    ///   - app: whom manifests have to be for.
    ///   - keys: Ed25519 public keys of 32 bytes; one of them signs. At least the one in use and the next one.
    ///   - store: where the last manifest is kept.
    public init(
        builtIn: Trust, version: Int, app: String, keys: [[UInt8]], store: any ManifestStore
    ) throws(ManifestProblem) {
        self.builtIn = builtIn
        self.app = app
        self.keys = keys
        self.store = store
        var first = Generation(number: 0, version: version, validUntil: nil, trust: builtIn)
        if let kept = try store.read() {
            let manifest = try SignedManifest(json: kept).verified(by: keys)
            guard manifest.app == app else { throw .otherApp(manifest.app) }
            if manifest.version > version { first = TrustKeeper.generation(0, manifest, builtIn.others) }
        }
        state = Locked(first)
    }

    /// What is in force.
    public var current: Generation { state.with { $0 } }

    /// Takes up a manifest: its text, as ``SignedManifest`` has it. `time` is the signed time where that is known, in whole
    /// Unix seconds. On an error what was in force stays so.
    @discardableResult
    public func takeUp(_ text: [UInt8], at time: Int64) throws(ManifestProblem) -> Generation {
        let manifest = try SignedManifest(json: text).verified(by: keys)
        guard manifest.app == app else { throw .otherApp(manifest.app) }
        guard time >= manifest.validity.lowerBound else { throw .notYetValid(from: manifest.validity.lowerBound) }
        guard time <= manifest.validity.upperBound else { throw .expired(at: manifest.validity.upperBound) }
        // One after the other, so that of two that come at once the older cannot be the one that is kept.
        return try turn.with { _ in replace(by: manifest, text) }.get()
    }

    private func replace(by manifest: PinManifest, _ text: [UInt8]) -> Result<Generation, ManifestProblem> {
        let now = current
        guard manifest.version > now.version else {
            return .failure(.notNewer(version: manifest.version, inForce: now.version))
        }
        do throws(ManifestProblem) {
            try store.write(text)
        } catch {
            return .failure(error)
        }
        let next = TrustKeeper.generation(now.number + 1, manifest, builtIn.others)
        state.with { $0 = next }
        return .success(next)
    }

    private static func generation(_ number: Int, _ manifest: PinManifest, _ others: Trust.Others) -> Generation {
        Generation(
            number: number, version: manifest.version, validUntil: manifest.validity.upperBound,
            trust: Trust(manifest.rules, others: others))
    }
}
