import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignWire

/// What had ended since a copy of the store was made, and ends again in the copy, whether a former store or
/// the nodes' data folders know it. ``AuditAction/afterRestoration`` lists the kinds.
struct RepeatedEndings {
    /// One account of the copy that differs.
    struct AccountEnding {
        var number: Int64
        var isErased = false
        /// ``Account/State-swift.enum/active`` if it did not end.
        var state = Account.State.active
        /// Whether the account's user id is no longer the copy's.
        var hasOtherUserID = false
        /// The user id that it has now, if that is known.
        var userID: Int64?
        var isVerificationTakenBack = false
    }

    var accounts: [AccountEnding] = []
    var retirements: [(id: KeyID, retirement: AppRelease.Retirement)] = []
    /// The ids of the webhooks that there still are; nil if they are those of the copy.
    var remainingWebhooks: Set<String>?
    /// Also of accounts that the copy does not have: their names must not be free.
    var erasedNames: [(app: String, tombstone: [UInt8])] = []

    init() {}

    /// Of changes that a promoted standby lacks. Verifications are rows that ``StoreRestoration`` removes.
    init(_ lost: LostChanges) {
        let numbers = Set(lost.accounts.keys).union(lost.erased).union(lost.accountsWithOtherUserIDs)
        accounts = numbers.sorted().map { number in
            AccountEnding(
                number: number, isErased: lost.erased.contains(number),
                state: lost.accounts[number] ?? .active,
                hasOtherUserID: lost.accountsWithOtherUserIDs.contains(number))
        }
        retirements = lost.retirements.map { (id: $0.key, retirement: $0.value) }
        remainingWebhooks = lost.remainingWebhooks
        erasedNames = lost.erasedNames
    }

    /// Ends it in the copy, within the transaction of a restoration. Returns the names that are to be removed
    /// from the store's files afterwards. `now` is in whole Unix seconds.
    func end(
        in deployment: Deployment, within transaction: StoreRestoration.Transaction, at now: Int64,
        counting repeated: inout FormerDeployment.Repeated
    ) throws(OperationalError) -> [AccountName] {
        let deployment = deployment.changing(transaction.store)
        var erased: [AccountName] = []
        for ending in accounts {
            guard let account = try deployment.store.account(ending.number), !account.isErased else {
                continue
            }
            if ending.isErased {
                _ = try deployment.eraseRows(of: account.name, in: account.app, at: now)
                erased.append(account.name)
            } else {
                try end(ending, of: account, in: deployment, at: now, counting: &repeated)
            }
        }
        repeated.erased += Int64(erased.count)
        // Once no account has a former one.
        for ending in accounts where ending.userID != nil {
            try setUserID(ending, in: deployment, at: now)
        }
        for (id, retirement) in retirements {
            guard let release = try deployment.store.release(id), release.retirement != retirement else {
                continue
            }
            try deployment.retire(id, with: retirement)
            repeated.retired += 1
        }
        if let remainingWebhooks {
            for webhook in try deployment.webhookSettings().endpoints
            where !remainingWebhooks.contains(webhook.id) {
                _ = try deployment.removeWebhook(webhook.id)
                repeated.webhooks += 1
            }
        }
        repeated.reservedNames += try transaction.add(erasedNames: erasedNames)
        return erased
    }

    private func end(
        _ ending: AccountEnding, of account: Account, in deployment: Deployment, at now: Int64,
        counting repeated: inout FormerDeployment.Repeated
    ) throws(OperationalError) {
        guard account.state != .removed else { return }
        if ending.hasOtherUserID, account.userID != nil, account.userID != ending.userID {
            _ = try deployment.setUserID(nil, of: account.name, in: account.app, at: now)
            repeated.userIDs += 1
        }
        if ending.isVerificationTakenBack, try deployment.store.verification(of: account.number) != nil {
            try deployment.revokeVerification(of: account.name, in: account.app)
            repeated.verifications += 1
        }
        if ending.state == .removed {
            _ = try deployment.removeAccount(account.name, of: account.app, at: now)
            repeated.removed += 1
        } else if ending.state == .locked, account.state == .active {
            _ = try deployment.lockAccount(account.name, of: account.app, at: now)
            repeated.locked += 1
        }
    }

    /// An account whose user id another one has, or had, stays without one.
    private func setUserID(
        _ ending: AccountEnding, in deployment: Deployment, at now: Int64
    ) throws(OperationalError) {
        guard let account = try deployment.store.account(ending.number), account.state != .removed,
            account.userID == nil
        else { return }
        do {
            _ = try deployment.setUserID(ending.userID, of: account.name, in: account.app, at: now)
        } catch  where error.kind == .failed {}
    }
}
