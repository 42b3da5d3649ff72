import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// Callers that each sign up, sign in, renew and are revoked, over and over; every third session is left to
/// live.
struct StoreLoad {
    private let writer: GroupWriter
    private let app: AppName

    init(database: String) throws(OperationalError) {
        let place = StorePlace.named(database)
        let store = place.open()
        try store.prepare()
        app = try AppName(argument: "load")
        _ = try store.insert(App(name: app, created: 0), recording: .unchained)
        store.close()
        writer = try GroupWriter(place.open()) { Line.error("note \($0)") }
    }

    /// Until standard input ends; then it drains, and the process may end.
    func run(callers: Int) {
        for caller in 0..<callers {
            Task.detached {
                var turn = 0
                while true {
                    await live("a-\(getpid())-\(caller)-\(turn)", isRevoked: turn % 3 != 2)
                    turn += 1
                }
            }
        }
        Line.out("running")
        while readLine() != nil {}
        writer.stop()
    }

    /// One account's life. What is refused is said, and not gone on with.
    private func live(_ name: String, isRevoked: Bool) async {
        guard let name = try? AccountName(normalizing: name),
            let id = SessionID(SystemRandom().bytes(SessionID.count).span), let platform = Platform("ios")
        else { return }
        var draft = AccountDraft(app: app, name: name, created: 1, tombstone: nil)
        draft.registration = StoredRegistration(
            credential: SystemRandom().bytes(StoredRegistration.credentialCount),
            sealedRecord: [1] + SystemRandom().bytes(239))
        let device = DeviceCredentials(
            signingKey: SystemRandom().bytes(65), agreementKey: SystemRandom().bytes(65), epochBegan: 1,
            sealedRoot: [1] + SystemRandom().bytes(72))
        var next = device
        next.epoch = 1
        do {
            let added = draft
            let inserted = try await writer.write { (store) throws(OperationalError) in
                try store.insert(added, recording: .unchained)
            }
            guard case .yes(let account) = inserted else { return Line.out("odd \(inserted)") }
            Line.out("account \(name)")
            let session = StoredSession(
                id: id, account: account.number, app: app, platform: platform, deviceClass: .phone,
                deviceName: "load",
                created: 1, credentials: .device(device))
            let opened = try await writer.write { (store) throws(OperationalError) in
                try store.open(session, proving: added.registration?.credential, slots: .single, at: 1)
            }
            guard case .yes = opened else { return Line.out("odd \(opened)") }
            Line.out("session \(id)")
            let renewed = next
            let swapped = try await writer.write { (store) throws(OperationalError) in
                try store.swap(id, from: .device(device), to: .device(renewed), at: 2)
            }
            guard case .yes = swapped else { return Line.out("odd \(swapped)") }
            Line.out("renewed \(id)")
            guard isRevoked else { return }
            let ended = try await writer.write { (store) throws(OperationalError) in
                try store.end(.one(id), with: SessionTermination(.revoked, at: 3), recording: .unchained)
            }
            guard ended == [id] else { return Line.out("odd \(ended)") }
            Line.out("revoked \(id)")
        } catch {
            Line.out("refused \(error.code.rawValue) \(error.detail)")
            try? await Task.sleep(for: .milliseconds(20))
        }
    }
}

extension AuditDraft {
    /// Numbered, and without a chain: what ties the records together is tested elsewhere.
    static let unchained = AuditDraft { head in
        let number = (head ?? []).reduce(0) { $0 << 8 | Int64($1) } + 1
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> Int64(56 - 8 * $0)) }
        return (AuditRow(number: number, record: [UInt8(ascii: "r")], tag: [0]), bytes)
    }
}
