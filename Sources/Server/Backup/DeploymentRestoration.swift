import CountersignAuthority
import CountersignSQL
import CountersignSeal
import CountersignWire
import Glibc

/// A deployment that is made anew from a backup, in an empty folder. The backup is read twice: the first time
/// all of it is verified, and nothing is written.
package struct DeploymentRestoration {
    package struct Outcome: Sendable {
        package let manifest: BackupManifest
        package let ended: StoreRestoration.Ended
        /// What the former deployment had ended; nil if none was named.
        package let repeated: FormerDeployment.Repeated?
        /// Signatures made at or before this time are refused. Whole Unix seconds, like all times.
        package let floor: Int64
        /// From when keyed requests are accepted.
        package let keyedRequestsFrom: Int64
        /// Whether the master key was written to the data folder.
        package let hasWrittenMasterKey: Bool
    }

    private let path: String
    private let keys: BackupKeys
    private let configuration: Configuration
    private let environment: [String: String]
    /// Where the store is to be.
    private let database: String
    private let former: FormerDeployment?

    fileprivate init(
        of path: String, opening keys: BackupKeys, with configuration: Configuration, database: String,
        former: FormerDeployment?, environment: [String: String]
    ) {
        (self.path, self.keys, self.configuration) = (path, keys, configuration)
        (self.database, self.former, self.environment) = (database, former, environment)
    }

    /// The name of the store's file until it is the store.
    private var draft: String { "\(database).restoring" }

    // MARK: Verifying

    private struct Verified {
        var manifest: BackupManifest
        var masterKey: MasterKey
        /// Whether the key is to be written to the data folder: not if servers are given it in another way.
        var writesMasterKey: Bool
    }

    fileprivate func run(
        at clock: RestorationClock, progress: (DeploymentBackup.Stage) -> Void
    ) throws(OperationalError) -> Outcome {
        let folder = RestoredFolder(configuration.data, database: database, draft: draft)
        try requireNothing(in: folder)
        let verified = try verify(at: clock.now, progress: progress)
        return try folder.fill { (inner) throws(OperationalError) in
            try restore(verified, in: inner, of: folder, at: clock, progress: progress)
        }
    }

    private func requireNothing(in folder: RestoredFolder) throws(OperationalError) {
        try folder.requireOwn()
        try folder.requireEmpty()
        for place in [database, draft] where try KeyFile.exists(place) {
            throw OperationalError(.usage, message: "\(place): exists; expected no store there")
        }
    }

    private func verify(
        at now: Int64, progress: (DeploymentBackup.Stage) -> Void
    ) throws(OperationalError) -> Verified {
        let reader = try BackupReader(path, opening: keys)
        let manifest = reader.manifest
        var contained: Secret?
        var done: Int64 = 0
        try reader.forEachPart { (part) throws(OperationalError) in
            switch part {
            case .file(.masterKey, let text): contained = text
            case .file: break
            case .database(let bytes): done += Int64(bytes.count)
            }
            progress(.compared(bytes: done, of: manifest.databaseBytes))
        }
        let (key, place, isGiven) = try masterKey(contained)
        try reader.requireProof(under: key, from: place)
        guard manifest.level <= StoreLayout.current.level else {
            throw OperationalError(
                .failed,
                message: "\(path): its store is of level \(manifest.level) of the schema, and this version "
                    + "of level \(StoreLayout.current.level); expected version \(manifest.product) or a "
                    + "later one")
        }
        // The floor under which signatures are refused would lie before some that were used.
        guard manifest.made <= now else {
            throw OperationalError(
                .failed,
                message: "\(path): made at \(CivilTime.rfc3339Text(manifest.made)), and the clock says "
                    + "\(CivilTime.rfc3339Text(now)); set it right first")
        }
        return Verified(manifest: manifest, masterKey: key, writesMasterKey: !isGiven)
    }

    private func masterKey(
        _ contained: Secret?
    ) throws(OperationalError) -> (key: MasterKey, place: String, isGiven: Bool) {
        if let (key, place) = keys.masterKey {
            try requireExpected(key, from: place)
            return (key, place, keys.isMasterKeyGiven)
        }
        guard let contained, let key = contained.withExposedBytes({ MasterKey(text: $0) }) else {
            throw OperationalError(
                .usage, message: "\(path): the master key is not in it; expected it as --master-key FILE")
        }
        // Its id is not told here: the maker of the backup has chosen the key, and would be believed.
        guard keys.masterKeyID != nil else {
            throw OperationalError(
                .usage,
                message: "\(path): the master key comes from the backup itself, which anybody can make "
                    + "who has the public key; expected --master-key-id HEX, as `countersign backup` printed "
                    + "it, or --master-key FILE")
        }
        try requireExpected(key, from: path)
        return (key, path, false)
    }

    private func requireExpected(_ key: MasterKey, from place: String) throws(OperationalError) {
        guard let expected = keys.masterKeyID, expected.lowercased() != key.idText else { return }
        throw OperationalError(
            .failed,
            message: "\(place): its master key is not \(expected), which --master-key-id names; this is not "
                + "a backup of that deployment, or the id of another time")
    }

    // MARK: Writing

    /// Makes the deployment in `folder`, and then moves it to where it is to be.
    private func restore(
        _ verified: Verified, in folder: DataFolder, of target: RestoredFolder, at clock: RestorationClock,
        progress: (DeploymentBackup.Stage) -> Void
    ) throws(OperationalError) -> Outcome {
        try write(verified, to: folder, of: target, progress: progress)
        progress(.verifying)
        // Otherwise a key that the process is given would be taken in place of the written one.
        var environment = environment
        if verified.writesMasterKey {
            environment[MasterKeySource.variable] = nil
            environment["CREDENTIALS_DIRECTORY"] = nil
        }
        let store = StorePlace.sqlite(path: draft).open()
        defer { store.close() }
        let deployment = try Deployment(folder: folder, store: store, environment: environment)
        if let copy = deployment.migration.backup { StoreCopy.remove(copy) }
        _ = try deployment.verify(copy: store, called: path, noted: verified.manifest.auditHead)
        let findings = try former.map { (former) throws(OperationalError) in
            try former.findings(for: deployment, following: [verified.manifest.auditHead])
        }
        let now = try clock.time(
            beside: [
                verified.manifest.made, try deployment.newestAuditTime(), findings?.newestRecord ?? 0,
            ], in: [former?.clockFolder])
        let keyedRequestsFrom = now + IdempotencyCoordinator.keptSeconds
        try folder.refuseKeyedRequests(until: keyedRequestsFrom)
        let manifest = verified.manifest
        var repeated: FormerDeployment.Repeated?
        var erased: [AccountName] = []
        let ended = try StoreRestoration(
            at: .sqlite(path: draft), authenticatingBy: deployment.rows
        ).run(
            at: now,
            repeating: { (transaction) throws(OperationalError) in
                guard let findings else { return }
                var counts = FormerDeployment.Repeated()
                erased = try findings.endings.end(
                    in: deployment, within: transaction, at: now, counting: &counts)
                repeated = counts
            }
        ) { ended in
            deployment.auditDraft(
                for: .backupRestore, on: .deployment,
                details: [
                    ("made", .integer(manifest.made)), ("head", .string(manifest.auditHead.text)),
                ] + ended.details)
        }
        try deployment.scrub(erased: erased)
        let floor = try raiseFloor(
            of: deployment, window: findings?.longestWindow ?? DeploymentRestoration.reserve)
        store.close()
        try StoreCopy.settle(draft)
        try target.publish()
        return Outcome(
            manifest: manifest, ended: ended, repeated: repeated, floor: floor,
            keyedRequestsFrom: keyedRequestsFrom,
            hasWrittenMasterKey: verified.writesMasterKey)
    }

    private func write(
        _ verified: Verified, to folder: DataFolder, of target: RestoredFolder,
        progress: (DeploymentBackup.Stage) -> Void
    ) throws(OperationalError) {
        let reader = try BackupReader(path, opening: keys)
        guard reader.manifest == verified.manifest else {
            throw OperationalError(.failed, message: "\(path): was changed while it was read")
        }
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(draft): cannot make the store").fault(.unreachable)
        }
        target.hasDraft = true
        defer { close(file) }
        KeyFile.giveToFolderOwner(file, path: draft)
        var done: Int64 = 0
        try reader.forEachPart { (part) throws(OperationalError) in
            switch part {
            case .file(let name, let content):
                if name.isRestored { try folder.write(content, as: name) }
            case .database(let bytes):
                try DeploymentRestoration.put(bytes, to: file, at: draft)
                done += Int64(bytes.count)
            }
            progress(.written(bytes: done, of: verified.manifest.databaseBytes))
        }
        if verified.writesMasterKey { try folder.write(verified.masterKey.text(), as: .masterKey) }
        guard fsync(file) == 0 else {
            throw SystemCallError(errno, while: "\(draft): cannot make it durable").fault(.unreachable)
        }
    }

    private static func put(_ bytes: [UInt8], to file: Int32, at path: String) throws(OperationalError) {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw SystemCallError(count < 0 ? errno : ENOSPC, while: "\(path): cannot write").fault(
                    .unreachable)
            }
            written += count
        }
    }

    /// Seconds ahead of the clock that signatures may have been admitted, if the former deployment cannot
    /// tell: a policy may have been widened since the backup. It is the widest window of a current scheme by
    /// default; a policy may have up to a day.
    static let reserve = 300

    /// Makes the replay file. The store expects another one, so signatures up to a window ahead are refused:
    /// the longest one of the policies, and at least `window`.
    private func raiseFloor(of deployment: Deployment, window: Int) throws(OperationalError) -> Int64 {
        let keys = try ReleaseKeyDirectory(deployment)
        let replay = try ReplayService(deployment, keys: keys, atLeast: window)
        guard let floor = replay.floor else {
            throw OperationalError(.failed, message: "\(deployment.folder.replay): has no floor")
        }
        return floor
    }
}

extension StoreRestoration.Ended {
    /// As the audit log has them.
    var details: [(name: String, value: JSONValue)] {
        [
            ("sessions", .integer(sessions)), ("upload_tickets", .integer(uploadTickets)),
            ("reset_codes", .integer(resetCodes)), ("known_devices", .integer(knownDevices)),
        ]
    }
}

extension Configuration {
    /// Makes a deployment in the data folder, which must be empty or not there, from the backup at `path`.
    /// Without a master key in `keys` or in the backup, the one that the process is given is used.
    /// What `former` has ended since is ended again.
    package func restore(
        from path: String, opening keys: BackupKeys, after former: FormerDeployment?,
        environment: [String: String], at clock: RestorationClock,
        progress: (DeploymentBackup.Stage) -> Void
    ) throws(OperationalError) -> DeploymentRestoration.Outcome {
        guard let database = store.file else {
            throw OperationalError(
                .usage,
                message: "restore: --store is a PostgreSQL database; restore that with pg_restore, or from "
                    + "a base backup, and then run `countersign restore --in-place` "
                    + "(docs/operate/postgresql-backup.md)")
        }
        return try DeploymentRestoration(
            of: path, opening: keys, with: self, database: database, former: former,
            environment: environment
        ).run(
            at: clock, progress: progress)
    }
}
