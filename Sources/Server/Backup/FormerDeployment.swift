import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignWire

/// The data folder or database that a restored deployment replaces, if its store can still be read: what was
/// erased, locked, removed or retired in it since the backup is so again.
package struct FormerDeployment {
    /// What was done again.
    package struct Repeated: Sendable, Equatable {
        package var erased: Int64 = 0
        /// Names that were erased and of which the backup has no account.
        package var reservedNames: Int64 = 0
        package var locked: Int64 = 0
        package var removed: Int64 = 0
        package var retired: Int64 = 0
        /// How far ahead of the clock, in seconds, a signature may have been admitted there.
        package var longestWindow = DeploymentRestoration.reserve
    }

    private static let page = 500
    /// The longest window that a policy may have, in seconds.
    private static let mostWindow = 86_400

    private let place: StorePlace
    /// The data folder; nil for a database.
    private let folder: DataFolder?

    /// `text` is the path of a data folder, or the address of a database.
    package init(_ text: String) throws(OperationalError) {
        if case .postgreSQL(let address)? = StoreLocation(text: text)?.place {
            (place, folder) = (.postgreSQL(address), nil)
            return
        }
        let folder = try DataFolder(text, absence: .fail)
        guard try KeyFile.exists(folder.database) else {
            throw OperationalError(.usage, message: "\(folder.database): no store there")
        }
        (place, self.folder) = (.sqlite(path: folder.database), folder)
    }

    private var name: String {
        switch place {
        case .sqlite(let path): path
        case .postgreSQL(let address): address.text
        }
    }

    /// Does it in `deployment`, whose store is at `target`. Throws, with nothing to be relied on, if a
    /// server uses the former store, if a row there was altered, or if its audit log does not contain
    /// `head`, the copy's: it is then not what became of the deployment after the copy. `now` is in whole
    /// Unix seconds.
    func repeatEndings(
        in deployment: Deployment, storedAt target: StorePlace, following head: AuditHead, at now: Int64
    ) throws(OperationalError) -> Repeated {
        try withoutServer { () throws(OperationalError) in
            try requireUnmoved()
            let store = place.open(authenticatingBy: deployment.rows)
            defer { store.close() }
            try store.requireNoLiveNodes()
            // Also shows that it is the same deployment: another one's rows do not verify.
            _ = try deployment.verify(copy: store, called: name, noted: head)
            var repeated = Repeated()
            var erased: [(name: AccountName, app: AppName)] = []
            for app in try deployment.store.apps() {
                erased += try repeatEndings(
                    of: app.name, in: store, to: deployment, at: now, counting: &repeated)
            }
            try deployment.eraseAccounts(erased, at: now)
            repeated.erased = Int64(erased.count)
            repeated.longestWindow = try longestWindow(in: store)
            for release in try store.releases(of: nil) {
                guard let retirement = release.retirement,
                    let restored = try deployment.store.release(release.id),
                    restored.retirement != retirement
                else { continue }
                try deployment.retire(release.id, with: retirement)
                repeated.retired += 1
            }
            // Of accounts that the backup does not have, too: their names must not be free.
            repeated.reservedNames = try StoreRestoration(at: target, authenticatingBy: deployment.rows)
                .addErasedNames(of: place)
            return repeated
        }
    }

    /// A mark of a move counts whether or not it is authentic. The verification of all rows detects a missing
    /// mark.
    private func requireUnmoved() throws(OperationalError) {
        let store = place.open()
        defer { store.close() }
        guard let moved = try store.value(of: .movedTo) else { return }
        let place = String(decoding: moved, as: UTF8.self).split(separator: " ").first ?? "another"
        throw OperationalError(
            .failed,
            message: "\(name): was moved to \(place), and lacks what ended since; "
                + "expected the store that was used last")
    }

    private func withoutServer<Result>(
        _ body: () throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        guard let folder else { return try body() }
        return try folder.withoutServer(
            refusal: "\(folder.path): a server runs on the former data folder; stop it for good first",
            body: body)
    }

    /// Of the policies as they are, and of all that a server has had; if the replay file does not tell those,
    /// at least what is held back without a former deployment. A server notes a wider window only some time
    /// after a policy has it.
    private func longestWindow(in store: any Store) throws(OperationalError) -> Int {
        var longest =
            folder.flatMap { ReplayHeader.widestWindow(inFileAt: $0.replay) }.map {
                min(max(Int(clamping: $0), 0), FormerDeployment.mostWindow)
            } ?? DeploymentRestoration.reserve
        var apps: [AppName: App] = [:]
        for app in try store.apps() {
            apps[app.name] = app
            longest = max(longest, try app.policy().longestWindow)
        }
        for release in try store.releases(of: nil) where !release.settings.isEmpty {
            guard let app = apps[release.app] else { continue }
            longest = max(longest, try app.policy(for: release).longestWindow)
        }
        return longest
    }

    /// Returns the accounts that are to be erased.
    private func repeatEndings(
        of app: AppName, in store: any Store, to deployment: Deployment, at now: Int64,
        counting repeated: inout Repeated
    ) throws(OperationalError) -> [(name: AccountName, app: AppName)] {
        var after: Int64 = 0
        var erased: [(name: AccountName, app: AppName)] = []
        while true {
            let accounts = try store.accounts(of: app, after: after, limit: FormerDeployment.page)
            for account in accounts {
                guard let restored = try deployment.store.account(account.number), restored.app == app,
                    !restored.isErased
                else { continue }
                guard account.isErased || account.name == restored.name else {
                    throw OperationalError(
                        .failed,
                        message: "\(name): account \(account.number) of app \(app) has another "
                            + "name than in the backup; expected what became of the same deployment")
                }
                if account.isErased {
                    erased.append((restored.name, app))
                } else if account.state == .removed, restored.state != .removed {
                    _ = try deployment.removeAccount(restored.name, of: app, at: now)
                    repeated.removed += 1
                } else if account.state == .locked, restored.state == .active {
                    _ = try deployment.lockAccount(restored.name, of: app, at: now)
                    repeated.locked += 1
                }
            }
            guard let last = accounts.last, accounts.count == FormerDeployment.page else { return erased }
            after = last.number
        }
    }
}
