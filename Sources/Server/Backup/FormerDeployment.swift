import CountersignAuthority
import CountersignSQL
import CountersignWire

/// The data folder that a restored deployment replaces, if its store can still be read: what was erased,
/// locked, removed or retired in it since the backup is so again.
package struct FormerDeployment {
    /// What was done again.
    package struct Repeated: Sendable, Equatable {
        package var erased: Int64 = 0
        /// Names that were erased and of which the backup has no account.
        package var reservedNames: Int64 = 0
        package var locked: Int64 = 0
        package var removed: Int64 = 0
        package var retired: Int64 = 0
    }

    private static let page = 500

    private let folder: DataFolder

    package init(_ path: String) throws(OperationalError) { folder = try DataFolder(path, absence: .fail) }

    /// Does it in `deployment`, whose store is the file at `path`. Throws, with nothing to be relied on, if a
    /// server runs on the former folder, or if a row there was altered. `now` is in whole Unix seconds.
    func repeatEndings(
        in deployment: Deployment, storedAt path: String, at now: Int64
    ) throws(OperationalError) -> Repeated {
        try folder.withoutServer(
            refusal: "\(folder.path): a server runs on the former data folder; stop it for good first"
        ) { () throws(OperationalError) in
            guard try KeyFile.exists(folder.database) else {
                throw OperationalError(.usage, message: "\(folder.database): no store there")
            }
            let store = StorePlace.sqlite(path: folder.database).open(authenticatingBy: deployment.rows)
            defer { store.close() }
            // Also shows that it is the same deployment: another one's rows do not verify.
            _ = try deployment.verify(copy: store, called: folder.database)
            var repeated = Repeated()
            for app in try deployment.store.apps() {
                try repeatEndings(of: app.name, in: store, to: deployment, at: now, counting: &repeated)
            }
            for release in try store.releases(of: nil) {
                guard let retirement = release.retirement,
                    let restored = try deployment.store.release(release.id),
                    restored.retirement != retirement
                else { continue }
                try deployment.retire(release.id, with: retirement)
                repeated.retired += 1
            }
            // Of accounts that the backup does not have, too: their names must not be free.
            repeated.reservedNames = try StoreRestoration(of: path, authenticatingBy: deployment.rows)
                .addErasedNames(of: folder.database)
            return repeated
        }
    }

    private func repeatEndings(
        of app: AppName, in store: any Store, to deployment: Deployment, at now: Int64,
        counting repeated: inout Repeated
    ) throws(OperationalError) {
        var after: Int64 = 0
        while true {
            let accounts = try store.accounts(of: app, after: after, limit: FormerDeployment.page)
            for account in accounts where account.state != .active {
                guard let restored = try deployment.store.account(account.number), restored.app == app,
                    !restored.isErased
                else { continue }
                if account.isErased {
                    _ = try deployment.eraseAccount(restored.name, of: app, at: now, rewriting: .always)
                    repeated.erased += 1
                } else if account.state == .removed, restored.state != .removed {
                    _ = try deployment.removeAccount(restored.name, of: app, at: now)
                    repeated.removed += 1
                } else if account.state == .locked, restored.state == .active {
                    _ = try deployment.lockAccount(restored.name, of: app, at: now)
                    repeated.locked += 1
                }
            }
            guard let last = accounts.last, accounts.count == FormerDeployment.page else { return }
            after = last.number
        }
    }
}
