import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// Accounts and their sessions, one each, as logins leave them.
extension SessionBench {
    private static let chunk = 2_000

    func fill(_ count: Int, _ progress: (String) -> Void) throws(Fault) -> [SessionID] {
        let store = makeStore()
        defer { store.close() }
        var ids: [SessionID] = []
        ids.reserveCapacity(count)
        var last: Int64 = 0
        while ids.count < count {
            let wanted = min(SessionBench.chunk, count - ids.count)
            try addAccounts(ids.count..<ids.count + wanted, store)
            let accounts = try store.accounts(of: app, after: last, limit: wanted)
            guard accounts.count == wanted, let newest = accounts.last else {
                throw Fault(.failed, "bench: \(accounts.count) accounts of \(wanted)")
            }
            last = newest.number
            var sessions: [StoredSession] = []
            for account in accounts { sessions.append(try session(of: account)) }
            let faults = try store.together(sessions.map(opening))
            if let fault = faults.lazy.compactMap({ $0 }).first { throw fault }
            ids += sessions.map(\.id)
            if ids.count.isMultiple(of: 100_000) { progress("\(ids.count) of \(count) sessions written") }
        }
        return ids
    }

    private func opening(_ session: StoredSession) -> (any Store) throws(Fault) -> Void {
        { (store: any Store) throws(Fault) -> Void in
            _ = try store.open(session, proving: [1], slots: .single, at: SessionBench.start)
        }
    }

    private func addAccounts(_ numbers: Range<Int>, _ store: any Store) throws(Fault) {
        var drafts: [AccountDraft] = []
        for number in numbers {
            guard let name = try? AccountName(normalizing: "account-\(number)@example.com") else {
                throw Fault(.failed, "bench: account name")
            }
            var draft = AccountDraft(app: app, name: name, created: SessionBench.start)
            draft.registration = StoredRegistration(credential: [1], sealedRecord: [])
            drafts.append(draft)
        }
        let recorded = deployment.recording(.accountImport, .app(app), [("accounts", .integer(Int64(drafts.count)))])
        guard try store.insert(drafts, recording: recorded).isEmpty else { throw Fault(.failed, "bench: names taken") }
    }

    private func session(of account: Account) throws(Fault) -> StoredSession {
        guard let id = SessionID(SystemRandom().bytes(SessionID.count).span) else { throw Fault(.failed, "bench: id") }
        let credentials = DeviceCredentials(
            signingKey: device.signingPoint, agreementKey: device.agreementPoint, epochBegan: SessionBench.start,
            sealedRoot: deployment.seal(device.root, of: id, in: app, epoch: 0))
        return StoredSession(
            id: id, account: account.number, app: app, platform: release.platform, deviceClass: .phone,
            deviceName: "phone", created: SessionBench.start, credentials: .device(credentials))
    }
}
