import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignWire

/// The data folder or database that a restored deployment replaces, if its store can still be read: what had
/// ended in it since the backup ends again (``RepeatedEndings``).
package struct FormerDeployment {
    /// What was done again.
    package struct Repeated: Sendable, Equatable {
        package var erased: Int64 = 0
        /// Names that were erased and of which the backup has no account.
        package var reservedNames: Int64 = 0
        package var locked: Int64 = 0
        package var removed: Int64 = 0
        package var retired: Int64 = 0
        /// User ids that were changed or cleared.
        package var userIDs: Int64 = 0
        /// Verifications that were taken back.
        package var verifications: Int64 = 0
        /// Webhooks that were removed.
        package var webhooks: Int64 = 0
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

    /// What had ended in a former store, which is verified.
    struct Findings {
        let endings: RepeatedEndings
        /// How far ahead of the clock, in seconds, a signature may have been admitted there.
        let longestWindow: Int
        /// The time of the newest record in its audit log, in whole Unix seconds.
        let newestRecord: Int64
    }

    /// Verifies the former store, and finds what had ended in it and not in the copy, which is
    /// `deployment`'s store. Changes nothing. Throws if a server uses the former store, if a row there was
    /// altered, or if its audit log contains none of `heads`: it is then not what became of the deployment
    /// after the copy.
    func findings(
        for deployment: Deployment, following heads: [AuditHead]
    ) throws(OperationalError) -> Findings {
        try withoutServer { () throws(OperationalError) in
            try requireUnmoved()
            let store = place.open(authenticatingBy: deployment.rows)
            defer { store.close() }
            try store.requireNoLiveNodes()
            var noted = heads.first
            for head in heads.reversed()
            where try store.auditRows(after: head.number - 1, limit: 1).first?.tag == head.tag {
                noted = head
            }
            // Also shows that it is the same deployment: another one's rows do not verify.
            _ = try deployment.verify(copy: store, called: name, noted: noted)
            var endings = RepeatedEndings()
            for app in try deployment.store.apps() {
                endings.accounts += try accounts(of: app.name, in: store, unlike: deployment)
            }
            for release in try store.releases(of: nil) {
                guard let retirement = release.retirement else { continue }
                endings.retirements.append((id: release.id, retirement: retirement))
            }
            let former = deployment.changing(store)
            endings.remainingWebhooks = Set(try former.webhookSettings().endpoints.map(\.id))
            endings.erasedNames = try StoreRestoration(at: place, authenticatingBy: deployment.rows)
                .erasedNames()
            return Findings(
                endings: endings, longestWindow: try longestWindow(in: store),
                newestRecord: try former.newestAuditTime())
        }
    }

    /// The folder's record of its server's clock, if there is a folder.
    var clockFolder: DataFolder? { folder }

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

    /// The accounts of the copy that have ended since, or some of whose rights have.
    private func accounts(
        of app: AppName, in store: any Store, unlike deployment: Deployment
    ) throws(OperationalError) -> [RepeatedEndings.AccountEnding] {
        var after: Int64 = 0
        var found: [RepeatedEndings.AccountEnding] = []
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
                var ending = RepeatedEndings.AccountEnding(number: account.number)
                (ending.isErased, ending.state) = (account.isErased, account.state)
                ending.hasOtherUserID = restored.userID != nil && account.userID != restored.userID
                ending.userID = ending.hasOtherUserID ? account.userID : nil
                if try deployment.store.verification(of: account.number) != nil {
                    ending.isVerificationTakenBack = try store.verification(of: account.number) == nil
                }
                let hasEnded =
                    ending.isErased || ending.state != .active || ending.hasOtherUserID
                    || ending.isVerificationTakenBack
                if hasEnded { found.append(ending) }
            }
            guard let last = accounts.last, accounts.count == FormerDeployment.page else { return found }
            after = last.number
        }
    }
}
