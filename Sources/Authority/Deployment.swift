import CountersignGate
import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Which copies of a deployment's store are opened.
package enum AcceptedCopy: Sendable {
    /// One that has all changes that the data folder has followed.
    case latest
    /// The same for a server, which reports an earlier one to all other nodes. A command only fails: one that
    /// is run by mistake, with the data folder of a test system, must not stop production.
    case latestOfAllNodes
    /// An earlier one, too: for what makes it the deployment's store again, or examines it.
    case any
}

/// A data folder, its store and its master key, opened together and checked to belong together.
package final class Deployment: Sendable {
    package let folder: DataFolder
    package let policyFiles: PolicyFiles
    package let store: any Store
    package let generation: DeploymentGeneration
    package let masterKey: MasterKeyRing
    let masterKeySource: MasterKeySource
    let auditChain: AuditChain
    /// The keys of the log of keyed requests.
    package let requestKeys: RequestLogKeys
    /// What opening it has done to the store's schema.
    package let migration: SchemaOutcome
    /// What a replay guard outside this machine derives its keys from.
    package let replaySecret: Secret
    private let tombstones: Locked<AccountTombstoneKey?>
    /// Authenticates the rows of copies of the store.
    package let rows: RowAuthenticator
    /// Authenticates the rows of the store itself; every connection to it needs this one.
    package let ownRows: RowAuthenticator
    /// How far the store had come when this data folder's processes last followed it.
    package let head: FollowedHead
    /// The party that changes are recorded for.
    let actor: AuditActor
    package let clock: any TimeSource
    let rootSealer: any SessionRootSealer

    /// Opens a deployment, or creates it at first use. A wrong master key is detected before anything is
    /// written.
    package init(
        folder: DataFolder, store: any Store, environment: [String: String], actor: AuditActor = .thisProcess,
        clock: any TimeSource = SystemTime(), rootSealer: any SessionRootSealer = MasterKeyRootSealer(),
        consenting consent: MigrationConsent = .expanding, policyFiles: PolicyFiles? = nil,
        accepting copy: AcceptedCopy = .latest
    ) throws(OperationalError) {
        let source = MasterKeySource(environment: environment, folder: folder)
        masterKeySource = source
        try Deployment.requireUnmoved(store)
        // Before the look at the store: another process that begins it makes the mark afterwards.
        let hasBegun = try KeyFile.exists(folder.storeMark)
        if try store.value(of: .masterKeyCheck) != nil {
            let keys = try MasterKeyRing.find(in: store, source: source).0
            migration = try store.prepare(
                consenting: consent, verifyingBy: Deployment.rows(in: store, under: keys))
        } else {
            // A store without the check of the master key must be empty: its rows were written without the
            // key.
            guard try store.isEmpty() else {
                throw OperationalError(
                    .failed,
                    message:
                        "master key: its check was removed from the store, which is not empty; restore a "
                        + "backup")
            }
            guard !hasBegun else { throw Deployment.emptied(folder) }
            let fresh = try source.findOrMake()
            migration = try store.prepare(consenting: consent, verifyingBy: nil)
            try Deployment.begin(store, under: fresh)
        }
        let (keys, checks) = try MasterKeyRing.find(in: store, source: source)
        (auditChain, rows, requestKeys, replaySecret) = try Deployment.openAuditLog(in: store, under: keys)
        generation = try DeploymentGeneration(folder.generation)
        masterKey = try MasterKeyRing(
            keys, checks: checks, in: store, source: source, generation: generation)
        tombstones = Locked(nil)
        self.actor = actor
        self.clock = clock
        self.rootSealer = rootSealer
        self.folder = folder
        self.policyFiles = policyFiles ?? PolicyFiles(folder: folder.policyFiles)
        self.store = store
        head = try FollowedHead(in: folder, under: rows, accepting: copy, clock: clock)
        ownRows = rows.following(head)
        try followingStore { () throws(OperationalError) in try store.authenticate(by: ownRows) }
        if !hasBegun, try !KeyFile.exists(folder.storeMark) {
            try KeyFile.make(at: folder.storeMark, holding: Secret(copying: Array("1\n".utf8).span))
        }
    }

    /// The same deployment, with changes recorded for `actor`.
    package func acting(as actor: AuditActor) -> Deployment { Deployment(self, actor: actor) }

    /// The same deployment, with changes made in `store`, which is the same store within a transaction.
    package func changing(_ store: any Store) -> Deployment {
        Deployment(self, actor: actor, store: store)
    }

    private init(_ other: Deployment, actor: AuditActor, store: (any Store)? = nil) {
        (folder, policyFiles, self.store) = (other.folder, other.policyFiles, store ?? other.store)
        (generation, masterKey) = (other.generation, other.masterKey)
        (masterKeySource, migration) = (other.masterKeySource, other.migration)
        (auditChain, rows, ownRows, head) = (other.auditChain, other.rows, other.ownRows, other.head)
        (requestKeys, replaySecret) = (other.requestKeys, other.replaySecret)
        (tombstones, clock, rootSealer) = (other.tombstones, other.clock, other.rootSealer)
        self.actor = actor
    }

    /// Throws if the store is behind the head that this data folder has followed, and tells the other
    /// nodes of that; otherwise follows it.
    package func followStore() throws(OperationalError) {
        try followingStore { () throws(OperationalError) in
            try head.require(of: "the store") { (number) throws(OperationalError) in
                try store.state(askingForAuditRecord: number)
            }
        }
    }

    /// Whether the store has all that this data folder has followed; false if it has followed nothing.
    package func hasAllThatWasFollowed() throws(OperationalError) -> Bool {
        guard let kept = head.kept else { return false }
        return head.isContained(in: try store.state(askingForAuditRecord: kept.audit.number))
    }

    /// The time of a restoration in place at `now`: later than any that is known, so that no head of before
    /// counts.
    package func nextRestoration(at now: Int64) throws(OperationalError) -> Int64 {
        let state = try store.state(askingForAuditRecord: 0)
        let known = [
            head.kept?.restored, state.summary.flatMap { rows.openSummary($0)?.restored },
            state.reported.flatMap { rows.openReport($0)?.head.restored },
        ]
        return max(now, (known.compactMap(\.self).max() ?? 0) + 1)
    }

    /// What another node has reported, and what rejects it (``FollowedHead``). `keyed` is from
    /// when keyed requests are accepted.
    package func rejection(
        at now: Int64, keyedRequestsFrom keyed: Int64
    ) throws(OperationalError) -> (report: HeadReport, restoration: AcceptedRestoration) {
        let state = try store.state(askingForAuditRecord: head.kept?.audit.number ?? 0)
        return try head.rejection(of: state, at: nextRestoration(at: now), keyedRequestsFrom: keyed)
    }

    /// From when keyed requests are accepted after a restoration: for as long as clients may repeat them,
    /// it is not known which ones ran since the copy was made. 0 for always.
    package func keyedRequestsStart(keptFor seconds: Int64) throws(OperationalError) -> Int64 {
        let restored = rows.restoration(of: try store.state(askingForAuditRecord: 0))
        return max(
            try folder.keyedRequestsStart() ?? 0,
            restored.map { $0.repeated?.keyedRequestsFrom ?? $0.time + seconds } ?? 0)
    }

    private func followingStore(_ body: () throws(OperationalError) -> Void) throws(OperationalError) {
        do {
            try body()
        } catch {
            head.report { (sealed) throws(OperationalError) in try store.report(sealed) }
            throw error
        }
    }

    /// A store that was moved has what was true then: sessions in it may have ended since.
    private static func requireUnmoved(_ store: any Store) throws(OperationalError) {
        guard let moved = try store.value(of: .movedTo) else { return }
        let place = String(decoding: moved, as: UTF8.self).split(separator: " ").first ?? "another store"
        throw OperationalError(
            .failed,
            message:
                "the deployment was moved to \(place); expected that address as --store or COUNTERSIGN_STORE")
    }

    /// Begins the audit log and the digests of a new store, unless another process has begun them meanwhile.
    private static func begin(_ store: any Store, under key: MasterKey) throws(OperationalError) {
        let auditKey = Secret(random: AuditChain.keyCount)
        let (chain, rows, _, _) = try parts(of: auditKey)
        try store.begin(
            with: [
                (.masterKeyCheck, MasterKeyCheck.sealed(under: key, auditKey: auditKey)),
                (.auditHead, chain.sealed(.empty)),
            ], authenticatedBy: rows)
    }

    /// A store that was emptied would begin again, with the names of its accounts free.
    private static func emptied(_ folder: DataFolder) -> OperationalError {
        OperationalError(
            .failed,
            message: "the store is empty, and this data folder's deployment had begun: expected its store; "
                + "restore a backup. To begin a new deployment here, remove \(folder.storeMark)")
    }

    /// What verifies a schema of a later level; nil if the check does not open.
    private static func rows(
        in store: any Store, under keys: MasterKeyRing.Keys
    ) throws(OperationalError) -> RowAuthenticator? {
        guard let check = try store.value(of: .masterKeyCheck),
            let opened = MasterKeyCheck(check, under: keys.current)
        else { return nil }
        return try parts(of: opened.auditKey).1
    }

    /// What the audit log's key makes.
    private static func openAuditLog(
        in store: any Store, under keys: MasterKeyRing.Keys
    ) throws(OperationalError) -> (AuditChain, RowAuthenticator, RequestLogKeys, Secret) {
        guard let check = try store.value(of: .masterKeyCheck),
            let opened = MasterKeyCheck(check, under: keys.current)
        else {
            throw OperationalError(
                .failed, message: "master key: its check was replaced while the store was opened")
        }
        return try parts(of: opened.auditKey)
    }

    private static func parts(
        of auditKey: Secret
    ) throws(OperationalError) -> (AuditChain, RowAuthenticator, RequestLogKeys, Secret) {
        guard let rows = RowAuthenticator(key: auditKey) else {
            throw OperationalError(.failed, message: "libsodium did not start")
        }
        let replaySecret = HKDFSHA512.expand(
            auditKey, info: Array("countersign/1 replay guard".utf8), count: 32)
        return (AuditChain(key: auditKey), rows, RequestLogKeys(auditKey), replaySecret)
    }

    /// The log of keyed requests, for a command; nil if there is none.
    package func requestLog() throws(OperationalError) -> RequestLog? {
        try RequestLog(ifAnyIn: folder, keys: requestKeys)
    }

    func seal(_ secret: Secret, as binding: SealBinding) -> [UInt8] {
        masterKey.seal(secret, as: binding, random: SystemRandom())
    }

    /// Nil if `sealed` was not sealed for this binding.
    func open(_ sealed: [UInt8], as binding: SealBinding) -> Secret? {
        try? masterKey.open(sealed, as: binding)
    }

    /// The same for what clients hold and send back.
    func openHeld(_ sealed: [UInt8], as binding: SealBinding) -> Secret? {
        masterKey.openHeld(sealed, as: binding)
    }

    /// Read at first use: a deployment opens without it, so that a store with an altered one can be examined.
    func tombstoneKey() throws(OperationalError) -> AccountTombstoneKey {
        if let key = tombstones.with({ $0 }) { return key }
        let key = try AccountTombstoneKey(in: store, under: masterKey)
        tombstones.with { $0 = key }
        return key
    }

    func codeKey() throws(OperationalError) -> AccountCodeKey { try tombstoneKey().codes }
}

extension SealBinding {
    static func policy(_ name: String, of app: AppName) -> SealBinding {
        SealBinding(kind: "policy", app: app.description, row: name)
    }
}

/// The value by which a wrong master key is detected: a fixed text sealed under the master key, followed by
/// the audit log's key.
///
/// They are one value so that the log cannot be made to look as if it had never begun: without the audit
/// log's key the deployment does not open.
struct MasterKeyCheck {
    let key: MasterKey
    let slot: SealSlot
    let auditKey: Secret

    private static let text = Array("countersign".utf8)
    private static let place = SealBinding(kind: "master-key-check", row: "check")

    /// Nil if `sealed` was not sealed under that key, or has no audit key.
    init?(_ sealed: [UInt8], under key: MasterKey) {
        guard let slot = sealed.first.map(SealSlot.init(rawValue:)),
            let opened = try? key.open(sealed, as: MasterKeyCheck.place, slot: slot)
        else { return nil }
        let count = MasterKeyCheck.text.count
        let end = count + AuditChain.keyCount
        guard opened.count == end else { return nil }
        self.key = key
        self.slot = slot
        auditKey = opened.part(count..<end)
    }

    /// `countersign ‖ audit key`.
    static func sealed(under key: MasterKey, slot: SealSlot = .first, auditKey: Secret) -> [UInt8] {
        key.seal(auditKey.prefixed(by: "countersign"), as: place, slot: slot)
    }
}
