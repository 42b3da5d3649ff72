import CountersignMemory

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Stores the last manifest that took effect.
public protocol ManifestStore: Sendable {
    /// The bytes last written; nil if there are none.
    func read() throws(ManifestError) -> [UInt8]?
    /// Replaces the stored bytes atomically; durable on return.
    func write(_ bytes: [UInt8]) throws(ManifestError)
}

/// Holds the trust in effect: the one built into the app, or a newer one from a manifest.
///
/// The version in effect only increases, also across restarts, and is durable before it takes effect. An
/// expired manifest remains in effect until a newer one arrives: otherwise an attacker could restore a
/// replaced key by withholding manifests. `others` always comes from the built-in trust.
public final class TrustKeeper: Sendable {
    /// A trust and its position in the sequence of changes.
    public struct Generation: Sendable {
        /// Increases with each change in this process, from 0 on.
        public let number: Int
        /// The version of the manifest; for the built-in set, the version that it stands for.
        public let version: Int
        /// The end of the manifest's validity, whole Unix seconds; nil for the built-in set.
        public let validUntil: Int64?
        /// The rules in effect.
        public let trust: Trust
    }

    private let builtIn: Trust
    private let app: String
    private let keys: [[UInt8]]
    private let store: any ManifestStore
    private let host: Trust.Host?
    private let state: Locked<Generation>
    /// Why the stored manifest is not in effect; nil if it is, or if there was none. Without it the built-in
    /// set is in effect, as after an installation, until ``takeUp(_:at:)`` receives another manifest.
    public let discarded: ManifestError?
    /// Held while a manifest is adopted, including the write to disk, so that readers of the trust in effect
    /// do not wait.
    private let turn = Locked(())

    /// Reads the store, and uses the stored manifest if it is newer than the built-in set. A stored manifest
    /// is ignored (``discarded``) if none of `keys` has signed it, as after an update with other keys, if it
    /// is damaged, or if it does not pin `host` although the built-in set does: the app must not fail at each
    /// launch. Throws ``ManifestError/store(_:)`` if the store cannot be read now, for example while the
    /// device is locked, and ``ManifestError/malformed(_:)`` for an invalid key.
    /// - Parameters:
    ///   - builtIn: the trust that the app was built with.
    ///   - version: the manifest version that the built-in set stands for; older manifests are refused. 0 if
    ///     it is older than all of them.
    ///   - app: the app that manifests must be for.
    ///   - keys: Ed25519 public keys of 32 bytes, at least the one in use and the next one. One of them must
    ///     have signed a manifest.
    ///   - store: the store of the last manifest.
    ///   - host: the app's own server: if the built-in set pins it, every manifest must pin it. Nil for none.
    public init(
        builtIn: Trust, version: Int, app: String, keys: [[UInt8]], store: any ManifestStore,
        covering host: Trust.Host? = nil
    ) throws(ManifestError) {
        self.builtIn = builtIn
        self.app = app
        self.keys = keys
        self.store = store
        self.host = host
        var first = Generation(number: 0, version: version, validUntil: nil, trust: builtIn)
        try SignedManifest.check(keys)
        var discarded: ManifestError?
        do throws(ManifestError) {
            if let kept = try store.read() {
                let manifest = try SignedManifest(json: kept).verified(by: keys)
                guard manifest.app == app else { throw .otherApp(manifest.app) }
                if manifest.version > version {
                    let next = TrustKeeper.generation(0, manifest: manifest, others: builtIn.others)
                    try TrustKeeper.check(next.trust, covers: host, like: builtIn)
                    first = next
                }
            }
        } catch {
            // The store may be readable at the next launch.
            if case .store = error { throw error }
            discarded = error
        }
        self.discarded = discarded
        state = Locked(first)
    }

    /// The trust in effect.
    public var current: Generation { state.with { $0 } }

    /// Puts a manifest into effect, given as the text of a ``SignedManifest``. `time` is the signed time if
    /// it is known, in whole Unix seconds. On an error the trust in effect does not change.
    @discardableResult
    public func takeUp(_ text: [UInt8], at time: Int64) throws(ManifestError) -> Generation {
        let manifest = try SignedManifest(json: text).verified(by: keys)
        guard manifest.app == app else { throw .otherApp(manifest.app) }
        guard time >= manifest.validity.lowerBound else {
            throw .notYetValid(from: manifest.validity.lowerBound)
        }
        guard time <= manifest.validity.upperBound else { throw .expired(at: manifest.validity.upperBound) }
        // One at a time, so that of two concurrent manifests the older cannot be stored last.
        return try turn.with { _ in replace(by: manifest, text: text) }.get()
    }

    private func replace(by manifest: PinManifest, text: [UInt8]) -> Result<Generation, ManifestError> {
        let now = current
        guard manifest.version > now.version else {
            return .failure(.notNewer(version: manifest.version, inForce: now.version))
        }
        let next = TrustKeeper.generation(now.number + 1, manifest: manifest, others: builtIn.others)
        do {
            try TrustKeeper.check(next.trust, covers: host, like: builtIn)
            try store.write(text)
        } catch {
            return .failure(error)
        }
        state.with { $0 = next }
        return .success(next)
    }

    /// Throws if `builtIn` pins `host` and `trust` does not: the rule for other hosts would silently apply to
    /// it, at every later launch too.
    private static func check(
        _ trust: Trust, covers host: Trust.Host?, like builtIn: Trust
    ) throws(ManifestError) {
        guard let host, !builtIn.rules(for: host).isEmpty else { return }
        guard !trust.rules(for: host).isEmpty, trust.isPinned(host) || !builtIn.isPinned(host) else {
            throw .hostNotPinned(host.description)
        }
    }

    private static func generation(_ number: Int, manifest: PinManifest, others: Trust.Others)
        -> Generation
    {
        Generation(
            number: number, version: manifest.version, validUntil: manifest.validity.upperBound,
            trust: Trust(manifest.rules, others: others))
    }
}

/// Stores the last manifest in a file that is replaced as a whole. The manifest is signed, so the file needs
/// no secrecy. An attacker with write access to the file can bring back the built-in set, by deleting the
/// file or reinstalling the app.
public struct ManifestFile: ManifestStore {
    private let path: String

    /// The folder must exist.
    public init(_ path: String) { self.path = path }

    /// The whole file; nil if it does not exist. Throws ``ManifestError/malformed(_:)`` if what is there is
    /// no manifest at any launch: too long, a folder, or a file that this app may not read. Throws
    /// ``ManifestError/store(_:)`` for what may pass, such as a file that is locked with the device.
    public func read() throws(ManifestError) -> [UInt8]? {
        // Does not block if the path is a pipe.
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw problem("cannot be opened") }
            return nil
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw problem("cannot be read") }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= SignedManifest.longest else {
            throw .malformed("\(path): expected a file of at most \(SignedManifest.longest) bytes")
        }
        guard let bytes = FileBytes.contents(of: path, upTo: SignedManifest.longest) else {
            throw problem("cannot be read")
        }
        return bytes
    }

    /// Writes a file beside it, syncs and renames it, and syncs the folder.
    public func write(_ bytes: [UInt8]) throws(ManifestError) {
        let draft = path + ".new"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw problem("cannot be written") }
        let written = FileBytes.put(bytes, in: descriptor)
        let synced = fsync(descriptor)
        close(descriptor)
        guard written == bytes.count, synced == 0, rename(draft, path) == 0, syncFolder() else {
            throw problem("cannot be written")
        }
    }

    private func syncFolder() -> Bool {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }

    private func problem(_ what: String) -> ManifestError {
        let reason = errno
        let text = "\(path): \(what): \(String(cString: strerror(reason)))"
        return reason == EACCES ? .malformed(text) : .store(text)
    }
}
