import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// A sealed value of the store, with what its seal is bound to.
package struct SealedValue: Sendable, Equatable {
    package enum Place: Sendable, Equatable {
        case policy(name: String, app: String)
        /// The edition tells the current key from the next one.
        case releaseKey(KeyID, app: String, edition: AppRelease.Edition)
        case registration(name: String, app: String, credential: [UInt8])
        case legacyCredential(name: String, app: String, rung: String)
        case sessionRoot(SessionID, app: String, epoch: UInt64)
        /// `scope` is written as in the store.
        case idempotentAnswer(scope: String, key: [UInt8])
    }

    package let place: Place
    package let sealed: [UInt8]

    package init(_ sealed: [UInt8], at place: Place) {
        self.sealed = sealed
        self.place = place
    }

    /// What the seal may be bound to: a release's key is a secret or a public key.
    fileprivate var bindings: [SealBinding] {
        switch place {
        case .policy(let name, let app): [SealBinding(kind: "policy", app: app, row: name)]
        case .releaseKey(let id, let app, let edition): SealBinding.keys(of: id, app: app, edition: edition)
        case .registration(let name, let app, let credential):
            [.record(app: app, row: name, credential: credential)]
        case .legacyCredential(let name, let app, let rung):
            [.legacyCredential(of: name, app: app, rung: rung)]
        case .sessionRoot(let id, let app, let epoch): [.root(of: id, app: app, epoch: epoch)]
        case .idempotentAnswer(let scope, let key): [.idempotentAnswer(scope: scope, key: key)]
        }
    }
}

/// The tables that have sealed values.
package enum SealedTable: String, Sendable, CaseIterable {
    case appSettings, releases, accounts, sessions, idempotentRequests
}

/// What one step of a rotation has done.
package struct SealProgress: Sendable, Equatable {
    /// Rows that were looked at.
    package var seen = 0
    /// Values that were sealed anew.
    package var sealed = 0
    /// Values that do not open and stay as they are.
    package var left = 0
    /// Where to go on; nil at the table's end.
    package var position: Int64?

    package init() {}
}

/// The sealed values of a store. The store accepts new ones only with the first byte that
/// ``MetaName/sealSlot`` holds: a process that has not noticed a rotation fails with `unreachable`, and loses
/// nothing.
package protocol SealStore: Sendable {
    /// The number of values whose first byte is another than `slot`.
    func countSealed(otherThan slot: UInt8) throws(OperationalError) -> Int64
    /// Gives to `seal` each value of the next `limit` rows after `position` that have one whose first byte is
    /// another than `slot`, and stores what it returns; nil leaves the value. Begins at position 0. Looks for
    /// the rows without keeping others from writing.
    func sealAgain(
        _ table: SealedTable, after position: Int64, limit: Int, unlessIn slot: UInt8,
        by seal: (SealedValue) -> [UInt8]?
    ) throws(OperationalError) -> SealProgress
    /// Removes from the store's files what is no longer in the store. Throws `unreachable` if another process
    /// reads for too long.
    func emptyLog() throws(OperationalError)
}

/// The replacement of the master key, while servers run. It may be killed at any point: running it again
/// goes on where it was.
///
/// 1. The next key is made, in a file of its own.
/// 2. One transaction names it in the store: from now on all processes seal under it.
/// 3. The values of the former key are sealed again, in small transactions.
/// 4. One transaction seals the deployment's own values, and makes the key the current one.
/// 5. The store's log, which has values of the former key, is emptied.
/// 6. The file of the next key replaces that of the former.
package struct MasterKeyRotation {
    private let deployment: Deployment
    private let announcement: Int64
    private let pause: (_ seconds: Double) -> Void

    /// Rows in one transaction: other writers wait for a few milliseconds.
    private static let batch = 200

    package enum Stage: Sendable, Equatable {
        /// The rotation began with this call, or goes on after an earlier one was interrupted.
        case began(isContinued: Bool, values: Int64)
        case sealed(Int64)
    }

    package struct Outcome: Sendable, Equatable {
        /// The ids of the keys, in hexadecimal.
        package var former: String?
        package var current: String
        package var sealed: Int64 = 0
        /// Values that opened under no key and are given up.
        package var left: Int64 = 0
        /// The file to take the key from, where the key does not come from the data folder; nil if nothing is
        /// left to do.
        package var keyToMove: String?
    }

    /// `announcement` are the milliseconds that a node may take to find the file of the next key. `pause`
    /// waits between transactions, so that servers can write.
    package init(
        of deployment: Deployment, announcement: Int64 = 5_000,
        pausing pause: @escaping (_ seconds: Double) -> Void = { usleep(UInt32($0 * 1_000_000)) }
    ) {
        self.deployment = deployment
        self.announcement = announcement
        self.pause = pause
    }

    /// What happens to values that open under no key: their rows were altered or moved.
    package enum UnopenedValues: Sendable {
        /// The rotation stops before the former key is gone: with it, rows that are set right open again.
        case keep
        case giveUp
    }

    /// Replaces the master key, or finishes a rotation that was interrupted.
    package func run(
        unopened: UnopenedValues = .keep, reporting report: (Stage) -> Void = { _ in }
    ) throws(OperationalError) -> Outcome {
        let lock = try RotationLock(deployment.folder.masterKeyLock)
        defer { withExtendedLifetime(lock) {} }
        try deployment.masterKey.look()
        let source = deployment.masterKeySource
        var isContinued = deployment.masterKey.keys.next != nil
        if !isContinued {
            if let outcome = try finishFiles() { return outcome }
            let found = try source.find()
            isContinued = found.next != nil
            let next = try source.findOrMakeNext()
            try requireNodes(holding: next)
            try begin(with: next)
        }
        let keys = deployment.masterKey.keys
        guard let next = keys.next else {
            throw OperationalError(.failed, message: "master key: the rotation did not begin")
        }
        var outcome = Outcome(former: keys.current.idText, current: next.idText)
        let requests = try deployment.requestLog()
        report(
            .began(isContinued: isContinued, values: try countSealed(otherThan: keys.slot.next, in: requests))
        )
        try sealAll(keys, next: next, requests: requests, outcome: &outcome, report: report)
        guard outcome.left == 0 || unopened == .giveUp else {
            throw OperationalError(
                .failed,
                message: "master key: \(outcome.left) values open under neither key, because their rows "
                    + "were altered or moved (`countersign audit verify`). All else is sealed again, and "
                    + "both keys are kept: set the rows right, restore a backup, or give the values up with "
                    + "--force")
        }
        try commit(keys, next: next, outcome: &outcome)
        if let rest = try finishFiles() { outcome.keyToMove = rest.keyToMove }
        return outcome
    }

    /// Throws unless every live node has the next key in its data folder: one without it could open nothing
    /// that is sealed from step 2 on.
    private func requireNodes(holding next: MasterKey) throws(OperationalError) {
        let end = NodeLease.now + announcement
        let path = deployment.masterKeySource.nextPath
        while true {
            let nodes = try deployment.store.nodes().nodes.filter(\.isLive)
            if Set(nodes.map(\.name)).count > 1,
                let node = nodes.first(where: { $0.masterKey?.isInFolder == false })
            {
                throw OperationalError(
                    .failed,
                    message: "node \(node.name) has its master key from the environment or a credential, "
                        + "where no rotation replaces it: put the key into its data folder as `master.key`, "
                        + "start it without the other, and run this again; nothing was changed")
            }
            let lacking = Set(nodes.filter { $0.masterKey?.next != next.idText }.map(\.name)).sorted()
            guard !lacking.isEmpty else { return }
            guard NodeLease.now < end else {
                throw OperationalError(
                    .failed,
                    message: "these nodes do not have the next master key \(next.idText): "
                        + "\(lacking.joined(separator: ", ")). Copy \(path) to their data folders (mode "
                        + "0600), and run this again; nothing was changed")
            }
            usleep(100_000)
        }
    }

    /// Steps 5 and 6 in the data folder of a node, once another node's command has replaced the key. Does
    /// nothing while a rotation runs from this folder.
    package func finishAtNode() throws(OperationalError) {
        // Without the lock first: a command that begins must not find it taken.
        guard let next = try deployment.masterKeySource.findNext(),
            next.id == deployment.masterKey.keys.current.id,
            let lock = try? RotationLock(deployment.folder.masterKeyLock)
        else { return }
        defer { withExtendedLifetime(lock) {} }
        _ = try finishFiles()
    }

    /// Step 2.
    private func begin(with next: MasterKey) throws(OperationalError) {
        let keys = deployment.masterKey.keys
        guard next.id != keys.current.id else {
            throw OperationalError(
                .failed,
                message: "\(deployment.masterKeySource.nextPath): this is the current master key; remove it")
        }
        let change: (any Store) throws(OperationalError) -> Void = { (store) throws(OperationalError) in
            guard let check = try store.value(of: .masterKeyCheck),
                let opened = MasterKeyCheck(check, under: keys.current)
            else {
                throw OperationalError(.failed, message: "master key: its check does not open")
            }
            let slot = keys.slot.next
            try store.set(
                .masterKeyNextCheck,
                to: MasterKeyCheck.sealed(
                    under: next, slot: slot, auditKey: opened.auditKey))
            try store.set(
                .sealSlot, to: [slot.rawValue],
                recording: self.deployment.auditDraft(
                    for: .masterKeyBegin, on: .deployment,
                    details: [
                        ("key", .string(keys.current.idText)),
                        ("next", .string(next.idText)),
                    ]))
        }
        try apply(change)
    }

    private func apply(_ change: @escaping (any Store) throws(OperationalError) -> Void)
        throws(OperationalError)
    {
        for fault in try deployment.store.applyTogether([change]) { if let fault { throw fault } }
        deployment.generation.advance()
        try deployment.masterKey.look()
    }

    /// Step 3. One pass suffices, because the store has refused values under the former key since step 2. The
    /// count after each pass verifies this, and further passes seal what is left.
    private func sealAll(
        _ keys: MasterKeyRing.Keys, next: MasterKey, requests: RequestLog?, outcome: inout Outcome,
        report: (Stage) -> Void
    ) throws(OperationalError) {
        for _ in 0..<3 {
            outcome.left = 0
            try sealInSteps(keys, next: next, outcome: &outcome, report: report)
            if let requests {
                let slot = keys.slot.next.rawValue
                outcome.sealed += Int64(
                    try requests.sealAgain(in: slot, pausing: pause) { seal($0, keys: keys, next: next) })
                outcome.left += Int64(try requests.countSealed(otherThan: slot))
                report(.sealed(outcome.sealed))
            }
            let rest = try countSealed(otherThan: keys.slot.next, in: requests)
            if rest == outcome.left { return }
        }
        throw OperationalError(
            .failed, message: "master key: values go on being sealed under the former key; run this again")
    }

    private func countSealed(
        otherThan slot: SealSlot, in requests: RequestLog?
    ) throws(OperationalError) -> Int64 {
        try deployment.store.countSealed(otherThan: slot.rawValue)
            + Int64(requests?.countSealed(otherThan: slot.rawValue) ?? 0)
    }

    private func sealInSteps(
        _ keys: MasterKeyRing.Keys, next: MasterKey, outcome: inout Outcome, report: (Stage) -> Void
    ) throws(OperationalError) {
        for table in SealedTable.allCases {
            var position: Int64? = 0
            while let start = position {
                let began = MasterKeyRotation.seconds
                let progress = try deployment.store.sealAgain(
                    table, after: start, limit: MasterKeyRotation.batch, unlessIn: keys.slot.next.rawValue
                ) { seal($0, keys: keys, next: next) }
                position = progress.position
                outcome.sealed += Int64(progress.sealed)
                outcome.left += Int64(progress.left)
                if progress.sealed > 0 {
                    report(.sealed(outcome.sealed))
                    // As long as the step took: servers have the store half of the time.
                    pause(min(MasterKeyRotation.seconds - began, 1))
                }
            }
        }
    }

    /// Step 4.
    private func commit(
        _ keys: MasterKeyRing.Keys, next: MasterKey, outcome: inout Outcome
    ) throws(OperationalError) {
        let left = outcome.left
        var sealed = 0
        let change: (any Store) throws(OperationalError) -> Void = { (store) throws(OperationalError) in
            for name in MetaName.sealed {
                guard let value = try store.value(of: name) else { continue }
                let again = try self.sealMeta(value, named: name, keys: keys, next: next)
                try store.set(name, to: again)
                sealed += 1
            }
            guard let check = try store.value(of: .masterKeyNextCheck) else {
                throw OperationalError(.failed, message: "master key: the check of the next key is gone")
            }
            try store.remove(.masterKeyNextCheck)
            try store.set(
                .masterKeyCheck, to: check,
                recording: self.deployment.auditDraft(
                    for: .masterKeyRotate, on: .deployment,
                    details: [("key", .string(next.idText)), ("left", .integer(left))]))
        }
        try apply(change)
        outcome.sealed += Int64(sealed)
    }

    /// Steps 5 and 6, where step 4 is done; nil if there is nothing to finish.
    private func finishFiles() throws(OperationalError) -> Outcome? {
        let source = deployment.masterKeySource
        let found = try source.find()
        let current = deployment.masterKey.keys.current
        guard let next = found.next, next.id == current.id else { return nil }
        try deployment.store.emptyLog()
        var outcome = Outcome(current: current.idText)
        if try source.isInFolder() {
            try source.moveNext()
        } else if found.current?.id == current.id {
            try source.removeNext()
        } else {
            outcome.keyToMove = source.nextPath
        }
        return outcome
    }

    private func seal(_ value: SealedValue, keys: MasterKeyRing.Keys, next: MasterKey) -> [UInt8]? {
        for binding in value.bindings {
            guard let opened = try? keys.current.open(value.sealed, as: binding, slot: keys.slot) else {
                continue
            }
            return next.seal(opened, as: binding, slot: keys.slot.next)
        }
        return nil
    }

    private func sealMeta(
        _ value: [UInt8], named name: MetaName, keys: MasterKeyRing.Keys, next: MasterKey
    ) throws(OperationalError) -> [UInt8] {
        let again = try name.sealAgain(value) { (part, binding) in
            guard let slot = part.first.map(SealSlot.init(rawValue:)), let key = keys.key(of: slot),
                let opened = try? key.open(part, as: binding, slot: slot)
            else { return nil }
            return next.seal(opened, as: binding, slot: keys.slot.next)
        }
        guard let again else {
            throw OperationalError(
                .failed,
                message: "\(name.rawValue): its sealed value does not open; the row was altered. "
                    + "Nothing was lost; restore a backup")
        }
        return again
    }

    private static var seconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

extension MetaName {
    /// The deployment's own values that are sealed under the master key.
    static let sealed: [MetaName] = [
        .answerKey, .assertionKeys, .opaqueKeys, .registrationKey, .bearerKey, .tombstoneKey, .webhookKeys,
    ]

    /// The others that decide what is accepted.
    static let decisive: [MetaName] = [
        .sealSlot, .replayFile, .sharedSettings, .replayConfirmation, .pinManifests, .rowsAccepted,
    ]

    /// Takes the value apart, hands each sealed part with its binding to `seal`, and puts the results
    /// together; nil if a part does not open.
    func sealAgain(
        _ value: [UInt8], by seal: (_ part: [UInt8], _ binding: SealBinding) -> [UInt8]?
    ) throws(OperationalError) -> [UInt8]? {
        switch self {
        case .answerKey: return AnswerSeeds.sealAgain(value, by: seal)
        case .opaqueKeys: return seal(value, .opaqueKeys)
        case .registrationKey: return RegistrationScalars.sealAgain(value, by: seal)
        case .bearerKey: return seal(value, .bearerKey)
        case .tombstoneKey: return seal(value, AccountTombstoneKey.binding)
        case .assertionKeys: return AssertionSeeds.sealAgain(value, by: seal)
        case .webhookKeys: return WebhookSeeds.sealAgain(value, by: seal)
        case .masterKeyCheck, .masterKeyNextCheck, .sealSlot, .auditHead, .replayFile, .replayEpoch,
            .sharedSettings, .replayConfirmation, .pinManifests, .meterBegan, .writeCheck, .rowsAccepted,
            .restoredInPlace, .reportedHead, .movedTo, .movedFrom, .webhooks, .webhookStages:
            return nil
        }
    }
}

/// Keeps a second rotation from running beside the first, until it is released.
private final class RotationLock {
    private let file: Int32

    init(_ path: String) throws(OperationalError) {
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        _ = KeyFile.giveToFolderOwner(file, path: path)
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            close(file)
            throw OperationalError(
                .failed, message: "\(path): locked; the master key is being replaced by another process")
        }
    }

    deinit { close(file) }
}
