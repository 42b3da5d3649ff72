import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignSeal
import CountersignWire
import Glibc

/// A backup of a deployment whose store is an SQLite file, made while servers run or not. The replay entries
/// and the log of keyed requests are not in it: what is restored refuses the requests of which they would
/// tell.
package struct DeploymentBackup {
    /// How far a backup or a restore has come.
    package enum Stage: Sendable, Equatable {
        case copied(bytes: Int64, of: Int64)
        case verifying
        case written(bytes: Int64, of: Int64)
        case compared(bytes: Int64, of: Int64)
    }

    package struct Options: Sendable {
        /// Nil to encrypt it under the master key.
        package var recipient: BackupRecipient?
        package var hasMasterKey = false
        package var replacesFile = false

        package init() {}
    }

    package struct Outcome: Sendable {
        package let manifest: BackupManifest
        /// Bytes of the backup.
        package let bytes: Int64
        /// The id of the key that opens it, in hexadecimal.
        package let key: String
        /// Why the data folder does not name this backup as its last one; nil if it does.
        package let recordFailure: OperationalError?
    }

    private let deployment: Deployment
    private let copy: StoreCopy
    private let options: Options
    private let path: String

    fileprivate init(_ deployment: Deployment, copy: StoreCopy, to path: String, options: Options) {
        (self.deployment, self.copy, self.path, self.options) = (deployment, copy, path, options)
    }

    /// `now` is in whole Unix seconds.
    fileprivate func run(
        now: Int64, progress: (Stage) -> Void
    ) throws(OperationalError) -> Outcome {
        try deployment.asOnlyBackup { () throws(OperationalError) in
            // In the data folder, which has the same unencrypted; of a run that was killed, perhaps.
            let place = deployment.folder.backupCopy
            StoreCopy.remove(place)
            defer { StoreCopy.remove(place) }
            try requireRoom()
            // Before the copy is made, which takes long: whether the file can be made there.
            let draft = try BackupDraft(for: path)
            defer { draft.remove() }
            let (key, head) = try makeCopy(at: place, progress: progress)
            let contents = try BackupContents(
                of: deployment.folder, database: place, including: options.hasMasterKey ? key : nil)
            let manifest = BackupManifest(
                product: Product.version, made: now, level: StoreLayout.current.level, masterKey: key.idText,
                auditHead: head, tables: try StoreCopy.count(in: place, verifiedBy: deployment.rows),
                files: contents.files, databaseBytes: contents.databaseBytes,
                digest: try contents.digest())
            return try write(contents, to: draft, manifest: manifest, under: key, progress: progress)
        }
    }

    /// A copy whose values are all sealed under the key, verified. A rotation of the key that began between
    /// the look at the key and the copy is waited for by a second look; a third copy is not made.
    private func makeCopy(
        at place: String, progress: (Stage) -> Void
    ) throws(OperationalError) -> (key: MasterKey, head: AuditHead) {
        for _ in 0..<2 {
            let key = try deployment.keyForBackup()
            try copy.make(at: place) { progress(.copied(bytes: $0, of: $1)) }
            progress(.verifying)
            if let head = try verify(place, under: key) { return (key, head) }
            StoreCopy.remove(place)
        }
        throw OperationalError(
            .failed, message: "backup: the master key was replaced twice while the store was copied")
    }

    /// Nil if the copy is not sealed under `key` alone.
    private func verify(_ place: String, under key: MasterKey) throws(OperationalError) -> AuditHead? {
        let opened = StorePlace.sqlite(path: place).open(authenticatingBy: deployment.rows)
        defer { opened.close() }
        guard try deployment.isSealed(opened, under: key) else { return nil }
        let head = try deployment.verify(copy: opened, called: "the copy")
        opened.close()
        try StoreCopy.settle(place)
        return head
    }

    /// Throws if there is no room for the copy and for the backup, as far as that is known beforehand.
    private func requireRoom() throws(OperationalError) {
        let bytes = copy.bytes
        let (here, there) = (deployment.folder.path, KeyFile.folder(of: path))
        var (first, second) = (stat(), stat())
        let isShared = stat(here, &first) == 0 && stat(there, &second) == 0 && first.st_dev == second.st_dev
        for (place, needed) in isShared ? [(here, bytes * 2)] : [(here, bytes), (there, bytes)] {
            guard let free = DiskRoom(at: place)?.freeBytes, free < needed else { continue }
            throw OperationalError(
                .unreachable,
                message: "\(place): \(free >> 20) MiB are free; expected \(needed >> 20 + 1) MiB, for "
                    + (isShared ? "a copy of the store and the backup" : "a copy of the store"))
        }
    }

    private func write(
        _ contents: BackupContents, to opened: BackupDraft, manifest: BackupManifest,
        under masterKey: MasterKey, progress: (Stage) -> Void
    ) throws(OperationalError) -> Outcome {
        let (draft, file) = (opened.path, opened.file)
        let key = options.recipient.map { BackupKey.recipient($0) } ?? .masterKey(masterKey)
        let writer = try BackupWriter(
            to: file, path: draft, under: key, manifest: manifest, provenBy: masterKey)
        let total = manifest.databaseBytes
        var done: Int64 = 0
        try contents.forEachPart { (part, isDatabase) throws(OperationalError) in
            try writer.write(part)
            if isDatabase { done += Int64(part.count) }
            progress(.written(bytes: done, of: total))
        }
        try writer.finish()
        try compare(draft, with: writer, manifest: manifest, progress: progress)
        var status = stat()
        guard fstat(file, &status) == 0 else {
            throw SystemCallError(errno, while: "\(draft): cannot look at it").fault(.unreachable)
        }
        try publish(draft)
        let (bytes, opener) = (Int64(status.st_size), options.recipient?.id ?? masterKey.idText)
        return Outcome(
            manifest: manifest, bytes: bytes, key: opener,
            recordFailure: record(
                LastBackup(
                    made: manifest.made, bytes: bytes, key: opener, auditHead: manifest.auditHead.text)))
    }

    /// Returns what is in the way: the backup is good whether or not it is recorded.
    private func record(_ backup: LastBackup) -> OperationalError? {
        do throws(OperationalError) {
            try backup.record(in: deployment.folder)
            return nil
        } catch {
            return error
        }
    }

    /// Reads back what was written, and compares it with the digest.
    private func compare(
        _ draft: String, with writer: BackupWriter, manifest: BackupManifest, progress: (Stage) -> Void
    ) throws(OperationalError) {
        let reader = try BackupReader(draft, writtenBy: writer)
        guard reader.manifest == manifest else {
            throw OperationalError(.failed, message: "\(draft): does not read as it was written")
        }
        var done: Int64 = 0
        try reader.forEachPart { (part) throws(OperationalError) in
            if case .database(let bytes) = part { done += Int64(bytes.count) }
            progress(.compared(bytes: done, of: manifest.databaseBytes))
        }
    }

    /// Gives the complete file its name.
    private func publish(_ draft: String) throws(OperationalError) {
        // A link, which unlike a rename replaces nothing.
        let result = options.replacesFile ? rename(draft, path) : link(draft, path)
        guard result == 0 else {
            guard errno != EEXIST else { throw DeploymentBackup.exists(path) }
            throw SystemCallError(errno, while: "\(path): cannot make the backup").fault(.unreachable)
        }
        KeyFile.syncFolder(of: path)
    }

    fileprivate static func exists(_ path: String) -> OperationalError {
        OperationalError(
            .usage, message: "\(path): exists already; --force replaces it")
    }
}

/// The file of a backup under another name, until it is complete.
private struct BackupDraft {
    let path: String
    let file: Int32

    init(for place: String) throws(OperationalError) {
        path = KeyFile.draftName(for: place)
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot make the backup").fault(.unreachable)
        }
    }

    /// What has its name by then stays.
    func remove() {
        close(file)
        unlink(path)
    }
}

extension Configuration {
    /// Whether `countersign backup` makes the store's backups; PostgreSQL's tools make those of a database.
    package var hasOwnBackups: Bool { store.copy != nil }

    /// The last backup of this data folder; nil if none was made, and for a database. Throws if its record is
    /// damaged.
    package func lastBackup() throws(OperationalError) -> LastBackup? {
        hasOwnBackups ? try LastBackup.read(inFolder: data) : nil
    }

    /// Makes a backup of the deployment at `path`.
    package func backUp(
        to path: String, options: DeploymentBackup.Options, environment: [String: String],
        progress: (DeploymentBackup.Stage) -> Void
    ) throws(OperationalError) -> DeploymentBackup.Outcome {
        guard let copy = store.copy else {
            throw OperationalError(
                .usage,
                message: "backup: the store is a PostgreSQL database; back it up with pg_dump or "
                    + "pg_basebackup, and the data folder's master.key apart "
                    + "(docs/operate/postgresql-backup.md)")
        }
        guard !options.hasMasterKey || options.recipient != nil else {
            throw OperationalError(
                .usage,
                message: "--with-master-key: expected --recipient FILE, too; without one, the backup is "
                    + "encrypted under the master key itself")
        }
        if !options.replacesFile, try KeyFile.exists(path) { throw DeploymentBackup.exists(path) }
        let plan = try schemaPlan(environment: environment)
        guard plan.pending.isEmpty else {
            throw OperationalError(
                .failed,
                message: "backup: the store is of level \(plan.level) of the schema, and this version of "
                    + "level \(plan.target); run the version that made it, or `countersign migrate` first, "
                    + "which copies the file")
        }
        let deployment = try openDeployment(absence: .fail, environment: environment)
        defer { deployment.store.close() }
        return try DeploymentBackup(deployment, copy: copy, to: path, options: options).run(
            now: deployment.clock.estimate, progress: progress)
    }
}
