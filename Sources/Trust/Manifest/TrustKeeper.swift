import CountersignMemory

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Where the last manifest that was taken up is kept.
public protocol ManifestStore: Sendable {
    /// The bytes last written; nil where there are none.
    func read() throws(ManifestError) -> [UInt8]?
    /// Takes the place of what was there. On return it is durable, and at every moment all of one or the
    /// other is there.
    func write(_ bytes: [UInt8]) throws(ManifestError)
}

/// Holds the trust that is in force: the one built into the app, or a newer one from a manifest.
///
/// The version in force only grows, across restarts too, and is durable before it takes effect. An expired
/// manifest stays in force until a newer one comes: otherwise an attacker could bring back a key that was
/// replaced, by withholding manifests. `others` always comes from the built-in trust.
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
    private let host: Trust.Host?
    private let state: Locked<Generation>
    /// Why the kept manifest is not in force; nil if there was none, or it could be read. The built-in set is
    /// in force then, as after an installation, until ``takeUp(_:at:)`` gets another manifest.
    public let discarded: ManifestError?
    /// Held while a manifest is adopted, including the write to disk, so that readers of the trust in force
    /// do not wait.
    private let turn = Locked(())

    /// Reads the store, and takes what it kept where that is newer than the built-in set. A kept manifest
    /// that none of `keys` has signed, as after an update with other keys, that is damaged, or that does not
    /// pin `host` although the built-in set does, is no reason to fail at each launch: it is as if it was not
    /// there (``discarded``), and the built-in version is the floor. Throws ``ManifestError/store(_:)`` if
    /// the store cannot be read now, as while the device is locked, and ``ManifestError/malformed(_:)`` for a
    /// key that is none.
    /// - Parameters:
    ///   - builtIn: what the app was built with.
    ///   - version: the manifest version that the built-in set stands for; older manifests are refused. 0
    ///     where it is older than all of them.
    ///   - app: whom manifests have to be for.
    ///   - keys: Ed25519 public keys of 32 bytes; one of them signs. At least the one in use and the next
    ///     one.
    ///   - store: where the last manifest is kept.
    ///   - host: the app's own server, which no manifest may leave out or unpin where the built-in set has
    ///     it; nil for none.
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
            // What cannot be read now may be read at the next launch.
            if case .store = error { throw error }
            discarded = error
        }
        self.discarded = discarded
        state = Locked(first)
    }

    /// What is in force.
    public var current: Generation { state.with { $0 } }

    /// Takes up a manifest: its text, as ``SignedManifest`` has it. `time` is the signed time where that is
    /// known, in whole Unix seconds. On an error what was in force stays so.
    @discardableResult
    public func takeUp(_ text: [UInt8], at time: Int64) throws(ManifestError) -> Generation {
        let manifest = try SignedManifest(json: text).verified(by: keys)
        guard manifest.app == app else { throw .otherApp(manifest.app) }
        guard time >= manifest.validity.lowerBound else {
            throw .notYetValid(from: manifest.validity.lowerBound)
        }
        guard time <= manifest.validity.upperBound else { throw .expired(at: manifest.validity.upperBound) }
        // One after the other, so that of two that come at once the older cannot be the one that is kept.
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

    /// Throws if `trust` has no rule for `host`, or does not pin it, and `builtIn` does: the rule for all
    /// other hosts would take its place unseen, and outlive each launch.
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

    /// The folder must be there.
    public init(_ path: String) { self.path = path }

    /// The whole file; nil if it does not exist. Throws ``ManifestError/malformed(_:)`` if what is there is
    /// no manifest at any launch: too long, a folder, or a file that this app may not read. Throws
    /// ``ManifestError/store(_:)`` for what may pass, such as a file that is locked with the device.
    public func read() throws(ManifestError) -> [UInt8]? {
        // Without waiting, where it is a pipe.
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

    /// Written beside it, synced, renamed, and the folder synced.
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
