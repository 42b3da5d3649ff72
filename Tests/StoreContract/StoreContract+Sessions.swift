import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import ScriptedClock
import Testing

/// Sessions: opened, swapped, ended, found again.
extension StoreContract {
    package static func id(_ number: Int) throws -> SessionID {
        let bytes = (0..<16).map { UInt8(truncatingIfNeeded: $0 < 8 ? 0xA5 : number >> (8 * (15 - $0))) }
        guard let id = SessionID(bytes.span) else {
            throw OperationalError(.failed, message: "sixteen bytes are no id")
        }
        return id
    }

    package static func session(
        _ number: Int, of account: Account, platform: String = "ios", kind: Device.Class = .phone,
        at now: Int64 = 1_000,
        key: UInt8? = nil
    ) throws -> StoredSession {
        let device = DeviceCredentials(
            signingKey: [UInt8](repeating: key ?? UInt8(truncatingIfNeeded: number), count: 65),
            agreementKey: [UInt8](repeating: 2, count: 65), epochBegan: now, sealedRoot: [1, 3, 0])
        return StoredSession(
            id: try id(number), account: account.number, app: account.app,
            platform: try #require(Platform(platform)),
            deviceClass: kind, deviceName: "Ada’s \u{1F4F1}\0", created: now, credentials: .device(device))
    }

    package static func bearer(_ number: Int, of account: Account, at now: Int64 = 1_000) throws
        -> StoredSession
    {
        var session = try session(number, of: account, at: now)
        session.credentials = .bearer(
            BearerCredentials(tokenHash: [1, 2], tokenExpires: now + 60, issued: now, loginTokenHash: [3]))
        session.opening = .unsigned
        return session
    }

    /// Opened under the credential that the account has.
    package func open(_ session: StoredSession, _ slots: SlotRule, at now: Int64? = nil) throws
        -> SessionOpenOutcome
    {
        let account = try #require(try make().account(session.account))
        return try make().open(
            session, proving: account.registration?.credential, slots: slots, at: now ?? session.created)
    }

    package func sessions() throws {
        let account = try added(accountDraft("sessions"))
        let revision = try make().revision()
        var first = try Self.session(1, of: account)
        first.keyStorage = .tpm
        guard case .yes(let opened, let none, _) = try open(first, .single) else {
            throw OperationalError(.failed, message: "not opened")
        }
        #expect(none.isEmpty)
        #expect(try make().session(first.id) == opened)
        var expected = first
        expected.change = opened.change
        #expect(opened == expected)
        #expect(try make().sessionChange() == opened.change)
        #expect(try make().session(Self.id(99)) == nil)
        #expect(throws: OperationalError.self, "an id is one session's") { try open(first, .unlimited) }

        try replacement(of: opened, account)
        try refusals(account)
        try swaps(account)
        try ends()
        try endsWithAccounts()
        try forgetting()
        try knownDevices()
        try manySessions()
        try releasesOfSessions()
        try outlines(after: 0, are: make().sessions(changedAfter: 0, limit: 10_000))
        #expect(
            try make().revision() == revision, "no release is judged by sessions, so nothing is read again")
    }

    private func replacement(of opened: StoredSession, _ account: Account) throws {
        let second = try Self.bearer(2, of: account, at: 1_005)
        guard case .yes(let now, let ended, _) = try open(second, .single) else {
            throw OperationalError(.failed, message: "not opened")
        }
        let end = SessionTermination(.replaced, at: 1_005, by: "phone")
        #expect(ended.map(\.id) == [opened.id] && ended.map(\.end) == [end])
        let replaced = try #require(try make().session(opened.id))
        #expect([replaced] == ended)
        #expect(replaced.change > opened.change && now.change > replaced.change)
        #expect(try make().session(second.id) == now)
        #expect(try make().sessions(of: account.number) == [now, replaced], "live ones first")
        #expect(try make().sessions(changedAfter: opened.change, limit: 10) == [replaced, now])
        #expect(try make().sessions(changedAfter: opened.change, limit: 1) == [replaced])
        #expect(try make().sessions(changedAfter: now.change, limit: 10).isEmpty)
        try outlines(after: opened.change, are: [replaced, now])

        let third = try Self.session(3, of: account, platform: "android", kind: .tablet, at: 1_010)
        guard case .yes(_, let both, _) = try open(third, .unlimited) else {
            throw OperationalError(.failed, message: "not opened")
        }
        #expect(both.isEmpty)
        #expect(
            try make().sessions(of: account.number).filter { $0.end == nil }.map(\.id) == [
                second.id, third.id,
            ])
        #expect(try make().sessions(of: account.app, limit: 2).map(\.id) == [second.id, third.id])
    }

    /// The outlines are those of the rows, but for the roots, which they do not read.
    private func outlines(after change: Int64, are rows: [StoredSession]) throws {
        let expected = rows.map { row in
            var outline = SessionOutline(row)
            if case .device(var device) = outline.credentials {
                device.sealedRoot = nil
                outline.credentials = .device(device)
            }
            return outline
        }
        #expect(try make().outlines(changedAfter: change, limit: rows.count) == expected)
        #expect(try make().outlines(changedAfter: change, limit: rows.count - 1) == expected.dropLast())
        if let last = rows.last {
            #expect(try make().outlines(changedAfter: last.change, limit: 10).isEmpty)
        }
    }

    private func refusals(_ account: Account) throws {
        func open(_ session: StoredSession, proving credential: [UInt8]?) throws -> SessionOpenOutcome {
            try make().open(session, proving: credential, slots: .single, at: 1_020)
        }
        let credential = try #require(account.registration?.credential)
        let fresh = try Self.session(10, of: account)
        let before = try make().sessionChange()
        #expect(try open(fresh, proving: nil) == .accountChanged)
        #expect(try open(fresh, proving: [1]) == .accountChanged)
        var stranger = fresh
        stranger.account += 1_000
        #expect(try open(stranger, proving: credential) == .accountChanged)
        stranger = fresh
        stranger.app = try #require(AppName("demo"))
        #expect(try open(stranger, proving: credential) == .accountChanged, "the account is another app's")
        let locked = try added(accountDraft("locked"))
        #expect(
            try make().change(locked.number, if: .anything, applying: .lock, at: 1, recording: .counting)
                == .yes(ended: []))
        #expect(try open(Self.session(11, of: locked), proving: credential) == .accountChanged)
        let bare = try make().insert(
            AccountDraft(
                app: account.app, name: AccountName(normalizing: "bare"), created: 1, tombstones: nil),
            recording: .counting)
        guard case .yes(let nothing) = bare else { throw OperationalError(.failed, message: "not added") }
        #expect(
            try open(Self.session(12, of: nothing), proving: nil) == .accountChanged,
            "it has nothing to prove")
        #expect(try make().sessionChange() == before && make().session(fresh.id) == nil)

        let onLadder = try added(legacyDraft("on-ladder"))
        #expect(
            try open(Self.bearer(13, of: onLadder), proving: [9]) == .accountChanged,
            "another value on the same rung")
        for (number, proof) in [(13, nil), (14, onLadder.legacy?.sealed)] {
            guard case .yes = try open(Self.bearer(number, of: onLadder), proving: proof) else {
                throw OperationalError(.failed, message: "its rung does not open")
            }
        }
    }

    private func swaps(_ account: Account) throws {
        let session = try #require(try make().session(Self.id(3)))
        guard case .device(var next) = session.credentials else {
            throw OperationalError(.failed, message: "not a device's")
        }
        next.epoch = .max
        next.sealedPreviousRoot = next.sealedRoot
        next.sealedRoot = [1, 8, 8]
        next.attempts = [[], [1, 2, 3]]
        next.successor = DeviceCredentials.Successor(sealedRoot: [], ephemeral: [4], attempts: [])
        let swapped = try make().swap(session.id, from: session.credentials, to: .device(next), at: 1_100)
        var expected = session
        (expected.credentials, expected.used) = (.device(next), 1_100)
        expected.change = try make().sessionChange()
        #expect(swapped == .yes(expected) && expected.change > session.change)
        #expect(try make().session(session.id) == expected)
        // A clock that was set back does not make the session look idle.
        guard
            case .yes(let same) = try make().swap(
                session.id, from: .device(next), to: .device(next), by: nil, at: 5)
        else { throw OperationalError(.failed, message: "not swapped") }
        #expect(same.used == 1_100)
        expected.change = same.change
        #expect(
            try make().swap(session.id, from: session.credentials, to: .device(next), at: 1_200)
                == .moved(expected),
            "they are not the old ones any more")
        var almost = next
        almost.successor?.ephemeral = [5]
        #expect(
            try make().swap(session.id, from: .device(almost), to: .device(next), at: 1_200)
                == .moved(expected))
        #expect(try make().swap(Self.id(99), from: .device(next), to: .device(next), at: 1_200) == .missing)

        let bearer = try #require(try make().session(Self.id(2)))
        var renewed = BearerCredentials(tokenHash: [7], tokenExpires: 5, issued: 4, loginTokenHash: [8])
        renewed.previousTokenHash = [1, 2]
        renewed.previousLoginTokenHash = [3]
        guard
            case .yes(let now) = try make().swap(
                bearer.id, from: bearer.credentials, to: .bearer(renewed), at: 1_300)
        else { throw OperationalError(.failed, message: "not swapped") }
        #expect(try make().session(bearer.id) == now && now.credentials == .bearer(renewed))
    }

    private func ends() throws {
        let end = SessionTermination(.signedOut, at: 1_400)
        let (one, two) = (try Self.id(2), try Self.id(3))
        let owner = try #require(try make().session(one)).account
        let before = (change: try make().sessionChange(), audit: try make().auditEnd().last)
        #expect(try make().end(.oneOf(one, account: owner + 1), with: end, recording: .counting) == [])
        #expect(try make().end(.one(Self.id(99)), with: end, recording: .counting) == [])
        #expect(try make().sessionChange() == before.change && make().auditEnd().last == before.audit)
        #expect(try make().end(.oneOf(one, account: owner), with: end, recording: .counting) == [one])
        #expect(try make().auditEnd().last == before.audit + 1)
        let over = try #require(try make().session(one))
        #expect(over.end == end && over.change == before.change + 1)
        #expect(
            try make().end(.one(one), with: SessionTermination(.revoked, at: 1_500), recording: .counting)
                == [], "once")
        #expect(try make().session(one) == over)
        #expect(try make().swap(one, from: over.credentials, to: over.credentials, at: 1_500) == .moved(over))
        #expect(try make().end(.account(owner, except: two), with: end, recording: nil) == [])
        #expect(try make().end(.account(owner, except: nil), with: end, recording: nil) == [two])

        let other = try added(accountDraft("other", of: "demo"))
        let here = try added(accountDraft("here"))
        for (number, account) in [(20, other), (21, here), (22, here)] {
            guard case .yes = try open(Self.session(number, of: account), .unlimited) else {
                throw OperationalError(.failed, message: "not opened")
            }
        }
        #expect(
            try make().end(.account(here.number, except: Self.id(21)), with: end, recording: nil) == [
                Self.id(22)
            ])
        #expect(
            try make().end(.app(#require(AppName("demo"))), with: end, recording: .counting) == [Self.id(20)])
        #expect(try make().session(Self.id(21))?.end == nil)
        #expect(
            try make().end(.all, with: SessionTermination(.restored, at: 1_600), recording: .counting)
                .contains(Self.id(21)))
        #expect(try make().sessions(changedAfter: 0, limit: 1_000).allSatisfy { $0.end != nil })
    }

    /// What is done to an account is done to its sessions, in the same transaction.
    private func endsWithAccounts() throws {
        let account = try added(accountDraft("followed"))
        let onLadder = try added(legacyDraft("followed-ladder"))
        var number = 30
        func ended(_ change: AccountChange, of account: Account) throws -> ([SessionID], SessionTermination?)
        {
            let ids = [try Self.id(number), try Self.id(number + 1)]
            for id in number...number + 1 {
                guard case .yes = try open(Self.session(id, of: account), .unlimited) else {
                    throw OperationalError(.failed, message: "not opened")
                }
            }
            number += 10
            let result = try make().change(
                account.number, if: .anything, applying: change, at: 2_000, recording: .counting)
            guard case .yes(let ended) = result else {
                throw OperationalError(.failed, message: "not changed")
            }
            for id in ids { #expect(try (make().session(id)?.end != nil) == ended.contains(id)) }
            return (ended, try ended.first.flatMap { try make().session($0)?.end })
        }
        let registration = StoredRegistration(credential: [UInt8](repeating: 1, count: 16), sealedRecord: [])
        let disabled = SessionTermination(.disabled, at: 2_000)
        let changed = SessionTermination(.passwordChanged, at: 2_000)
        let upgrade = try ended(.upgrade(registration), of: onLadder)
        #expect(upgrade.0 == [] && upgrade.1 == nil, "its password is the same")
        let kept = try ended(.register(registration, keeping: Self.id(40)), of: account)
        #expect(try kept.0 == [Self.id(41)] && kept.1 == changed)
        let lock = try ended(.lock, of: account)
        #expect(try lock.0 == [Self.id(40), Self.id(50), Self.id(51)] && lock.1 == disabled)
        #expect(
            try make().change(account.number, if: .anything, applying: .unlock, at: 1, recording: .counting)
                == .yes(ended: []))
        let demoted = try ended(.legacy(LegacyCredential(rung: .md5, sealed: [1])), of: account)
        #expect(try demoted.0 == [Self.id(60), Self.id(61)] && demoted.1 == changed)
        let removal = try ended(.remove, of: account)
        #expect(try removal.0 == [Self.id(70), Self.id(71)] && removal.1 == disabled)
        number = 190
        let changer = try added(legacyDraft("followed-password"))
        let credential = LegacyCredential(rung: .md5, sealed: [1, 2])
        let other = try ended(.legacyPassword(credential, keeping: Self.id(190)), of: changer)
        #expect(try other.0 == [Self.id(191)] && other.1 == changed)
        #expect(try make().account(changer.number)?.legacy == credential)
        _ = try make().change(
            changer.number, if: .anything, applying: .remove, at: 2_000, recording: .counting)
    }

    private func forgetting() throws {
        let account = try added(accountDraft("idle"))
        for number in 80..<84 {
            let session = try Self.session(number, of: account, at: 5_000 + Int64(number))
            guard case .yes = try open(session, .unlimited) else {
                throw OperationalError(.failed, message: "not opened")
            }
        }
        let (shop, demo) = (try #require(AppName(Self.shop)), try #require(AppName("demo")))
        // Not those of before: they have ended, or are not of this app, or were used since.
        func forget(_ app: AppName, idle: TrustedTime, age: TrustedTime? = nil, limit: Int) throws
            -> [SessionID]
        {
            try make().forgetSessions(of: app, usedBefore: idle, createdBefore: age, limit: limit)
        }
        #expect(try forget(demo, idle: 6_000, age: 6_000, limit: 10) == [])
        let idle = try forget(shop, idle: 5_083, limit: 100)
        #expect(try Set(idle).isSuperset(of: [Self.id(80), Self.id(81), Self.id(82)]))
        #expect(try make().session(Self.id(82)) == nil && make().session(Self.id(83)) != nil)
        #expect(try forget(shop, idle: .late, age: .late, limit: 0) == [])
        // By their age, however lately they were used; a batch has no more than the limit of both kinds.
        for number in 84..<88 {
            var session = try Self.session(number, of: account, at: 4_000 + Int64(number))
            session.used = number == 87 ? 4_500 : 8_000
            guard case .yes = try open(session, .unlimited) else {
                throw OperationalError(.failed, message: "not opened")
            }
        }
        #expect(try forget(shop, idle: 4_501, age: 4_086, limit: 2) == [Self.id(87), Self.id(84)])
        #expect(try forget(shop, idle: 0, age: 4_086, limit: 2) == [Self.id(85)])
        #expect(try make().session(Self.id(86)) != nil && make().session(Self.id(83))?.end == nil)
        for (number, time) in [(86, 8_999), (83, 8_999)] {
            _ = try make().end(
                .one(Self.id(number)), with: SessionTermination(.revoked, at: Int64(time)), recording: nil)
        }
        let again = try Self.session(82, of: account, at: 5_082)
        guard case .yes = try open(again, .unlimited) else {
            throw OperationalError(.failed, message: "not opened")
        }

        let change = try make().sessionChange()
        #expect(try make().forgetSessions(endedBefore: 9_000, limit: 1).count == 1)
        #expect(try make().forgetSessions(endedBefore: 9_000, limit: 1_000).count > 5)
        #expect(try make().forgetSessions(endedBefore: 9_000, limit: 1_000).isEmpty)
        #expect(try make().session(Self.id(82)) != nil && make().session(Self.id(83)) == nil)
        _ = try make().end(.one(Self.id(82)), with: SessionTermination(.revoked, at: 9_001), recording: nil)
        #expect(try make().forgetSessions(endedBefore: .late, limit: 1_000).contains(Self.id(82)))
        #expect(try make().sessionChange() == change + 1, "a number is never given twice")
    }

    private func knownDevices() throws {
        let account = try added(accountDraft("devices"))
        func sign(in key: UInt8, at now: Int64) throws {
            let session = try Self.session(200 + Int(key), of: account, at: now, key: key)
            guard case .yes = try open(session, .single) else {
                throw OperationalError(.failed, message: "not opened")
            }
            _ = try make().end(
                .one(session.id), with: SessionTermination(.signedOut, at: now), recording: nil)
            _ = try make().forgetSessions(endedBefore: .late, limit: 10)
        }
        func known(_ key: UInt8) throws -> KnownDevice? {
            let device = KnownDevice(signingKey: [UInt8](repeating: key, count: 65), lastSeen: 0)
            return try make().knownDevice(device.id, of: account.number)
        }
        #expect(try known(1) == nil)
        try sign(in: 1, at: 50)
        #expect(try known(1) == KnownDevice(signingKey: [UInt8](repeating: 1, count: 65), lastSeen: 50))
        for key in 2...20 as ClosedRange<UInt8> { try sign(in: key, at: 100 + Int64(key)) }
        try sign(in: 1, at: 200)
        #expect(try known(1)?.lastSeen == 200)
        // A clock that went back does not make the newest the oldest.
        try sign(in: 21, at: 3)
        #expect(try known(21)?.lastSeen == 3 && known(2) == nil && known(3) != nil && known(1) != nil)
        let other = try added(accountDraft("devices-2"))
        try revocations(try added(accountDraft("devices-3")))
        let device = try #require(try known(1))
        #expect(try make().knownDevice(device.id, of: other.number) == nil)
        guard case .yes = try open(Self.bearer(300, of: other), .single) else {
            throw OperationalError(.failed, message: "not opened")
        }
        _ = try make().change(account.number, if: .anything, applying: .remove, at: 1, recording: .counting)
        #expect(try known(1) == nil)
    }

    /// Revoking a session forgets its device, and only that one.
    private func revocations(_ account: Account) throws {
        func opened(_ id: Int, key: UInt8, at now: Int64) throws -> SessionID {
            let session = try Self.session(id, of: account, at: now, key: key)
            guard case .yes = try open(session, .unlimited) else {
                throw OperationalError(.failed, message: "not opened")
            }
            return session.id
        }
        func revoke(_ id: SessionID, device: RevokedDevice, of number: Int64? = nil) throws -> [Bool] {
            let outcome = try make().revoke(
                id, of: number, device: device, with: SessionTermination(.revoked, at: 90),
                recording: .counting)
            return [outcome.didEnd, outcome.didForgetDevice]
        }
        func known() throws -> [UInt8] {
            try make().knownDevices(of: account.number).map(\.device.signingKey[0])
        }
        let own = try opened(400, key: 31, at: 10)
        let second = try opened(401, key: 31, at: 11)
        let stolen = try opened(402, key: 32, at: 12)
        let kept = try opened(403, key: 33, at: 13)
        #expect(try known() == [33, 32, 31])
        let entries = try make().knownDevices(of: account.number)
        #expect(entries.map(\.firstSeen) == [13, 12, 10] && entries.map(\.device.lastSeen) == [13, 12, 11])
        #expect(entries.allSatisfy { $0.kind != nil && $0.name != nil })
        #expect(try revoke(kept, device: .kept) == [true, false] && known() == [33, 32, 31])
        #expect(try revoke(stolen, device: .forgotten, of: account.number + 1) == [false, false])
        #expect(try revoke(stolen, device: .forgottenUnlessOf(own), of: account.number) == [true, true])
        #expect(try known() == [33, 31])
        #expect(
            try revoke(second, device: .forgottenUnlessOf(own)) == [true, false],
            "it is the caller's own device")
        #expect(try revoke(kept, device: .forgotten) == [false, true], "the session had ended")
        #expect(try known() == [31])
        let audited = try make().auditEnd().last
        #expect(try revoke(kept, device: .forgotten) == [false, false] && make().auditEnd().last == audited)
        let device = try make().knownDevices(of: account.number)[0].device.id
        #expect(try !make().forgetDevice(device, of: account.number + 1, recording: .counting))
        #expect(try make().forgetDevice(device, of: account.number, recording: .counting) && known() == [])
        #expect(try !make().forgetDevice(device, of: account.number, recording: .counting))
        #expect(try make().session(own)?.end == nil)
    }
}
