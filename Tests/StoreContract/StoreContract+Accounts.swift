import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

/// Accounts: names, numbers, and what a change takes with it.
extension StoreContract {
    package static let shop = "shop"

    package func accountDraft(_ name: String, of app: String = shop, userID: Int64? = nil) throws
        -> AccountDraft
    {
        var draft = AccountDraft(
            app: try #require(AppName(app)), name: try AccountName(normalizing: name), userID: userID,
            created: 100, tombstones: nil)
        draft.registration = StoredRegistration(
            credential: [UInt8](repeating: 7, count: StoredRegistration.credentialCount),
            sealedRecord: [1, 0, 255])
        return draft
    }

    package func legacyDraft(_ name: String, userID: Int64? = nil) throws -> AccountDraft {
        var draft = try accountDraft(name, userID: userID)
        draft.registration = nil
        draft.legacy = LegacyCredential(rung: .md5Salt, sealed: [1, 9, 8])
        return draft
    }

    package func added(_ draft: AccountDraft) throws -> Account {
        guard case .yes(let account) = try make().insert(draft, recording: .counting) else {
            throw OperationalError(.failed, message: "\(draft.name) is taken")
        }
        return account
    }

    package func accounts() throws {
        let shop = try #require(AppName(Self.shop))
        #expect(try make().insert(App(name: shop, created: 1), recording: .counting) == .yes)
        let revision = try make().revision()
        let ada = try added(accountDraft("Ada", userID: 7))
        #expect(
            ada.name.description == "ada" && ada.state == .active && ada.userID == 7 && ada.created == 100)
        #expect(try make().account(AccountName(normalizing: "ADA"), of: shop) == ada)
        #expect(try make().account(ada.number) == ada)
        #expect(try make().account(ada.number + 1_000) == nil)
        #expect(
            try make().account(ada.name, of: #require(AppName("demo"))) == nil,
            "another app's names are its own")

        #expect(try make().insert(accountDraft("ada"), recording: .counting) == .taken(.name))
        #expect(try make().insert(accountDraft("bob", userID: 7), recording: .counting) == .taken(.userID))
        #expect(try make().insert(accountDraft("ada", userID: 7), recording: .counting) == .taken(.name))
        let elsewhere = try added(accountDraft("ada", of: "demo", userID: 7))
        #expect(elsewhere.number != ada.number)
        #expect(throws: OperationalError.self) {
            try make().insert(accountDraft("ada", of: "absent"), recording: .counting)
        }

        let bob = try added(accountDraft("bob"))
        #expect(bob.userID == nil)
        let eve = try added(legacyDraft("eve; DROP TABLE account"))
        #expect(eve.userID == nil && eve.legacy == LegacyCredential(rung: .md5Salt, sealed: [1, 9, 8]))
        #expect(try make().account(eve.number) == eve)
        #expect(try make().accounts(of: shop, after: 0, limit: 10) == [ada, bob, eve])
        #expect(try make().accounts(of: shop, after: ada.number, limit: 1) == [bob])
        #expect(try make().accounts(of: shop, after: eve.number, limit: 1).isEmpty)
        #expect(
            try make().revision() == revision, "no release is judged by accounts, so nothing is read again")
        try imports(after: eve)
        try accountChanges(of: bob)
        try ladder(from: bob)
        try resets(of: ada)
    }

    private func imports(after last: Account) throws {
        let before = try make().auditEnd().last
        let drafts = [
            try legacyDraft("m1", userID: 20), try legacyDraft("ada"), try legacyDraft("m2", userID: 20),
            try legacyDraft("m3"), try legacyDraft("m1", userID: 30),
        ]
        #expect(try make().insert(drafts, recording: .counting) == [1: .name, 2: .userID, 4: .name])
        let made = try make().accounts(of: last.app, after: last.number, limit: 10)
        #expect(made.map(\.name.description) == ["m1", "m3"] && made.map(\.userID) == [20, nil])
        #expect(try make().auditEnd().last == before + 1, "one record for all of them")
        #expect(try make().insert([drafts[0]], recording: .counting) == [0: .name])
        #expect(try make().insert([AccountDraft](), recording: .counting) == [:])
        #expect(try make().auditEnd().last == before + 1, "and none for nothing")

        let highest = try legacyDraft("highest", userID: .max)
        #expect(throws: OperationalError.self) {
            try make().insert([highest, try accountDraft("m9", of: "absent")], recording: .counting)
        }
        #expect(try make().account(highest.name, of: highest.app) == nil, "all of an import or none")
    }

    private func accountChanges(of bob: Account) throws {
        func change(_ expected: AccountPrecondition, _ change: AccountChange) throws -> AccountChangeOutcome {
            try make().change(bob.number, if: expected, applying: change, at: 200, recording: .counting)
        }
        let before = try make().auditEnd().last
        #expect(try change(.anything, .lock) == .yes(ended: []))
        #expect(try make().account(bob.number)?.state == .locked)
        #expect(try change(.anything, .unlock) == .yes(ended: []))
        #expect(try make().account(bob.number) == bob)
        #expect(try make().auditEnd().last == before + 2)

        let renewed = StoredRegistration(credential: [UInt8](repeating: 8, count: 16), sealedRecord: [1, 2])
        let old = bob.registration?.credential
        #expect(try change(.credential(nil), .register(renewed, keeping: nil)) == .missing)
        #expect(try change(.credential(renewed.credential), .register(renewed, keeping: nil)) == .missing)
        #expect(try make().account(bob.number) == bob)
        #expect(try change(.credential(old), .register(renewed, keeping: nil)) == .yes(ended: []))
        #expect(try change(.credential(old), .register(renewed, keeping: nil)) == .missing, "once")
        #expect(try make().account(bob.number)?.registration == renewed)
        #expect(
            try make().change(
                bob.number + 1_000, if: .anything, applying: .lock, at: 200, recording: .counting) == .missing
        )
        #expect(try make().auditEnd().last == before + 3, "what did not come about is not recorded")
    }

    /// On to the ladder, off it again, and away.
    private func ladder(from bob: Account) throws {
        func change(_ change: AccountChange) throws -> AccountChangeOutcome {
            try make().change(bob.number, if: .anything, applying: change, at: 300, recording: .counting)
        }
        let credential = LegacyCredential(rung: .hmacMD5Time, sealed: [1, 3])
        #expect(try change(.legacy(credential)) == .yes(ended: []))
        var account = try #require(try make().account(bob.number))
        #expect(account.legacy == credential && account.registration == nil)
        #expect(account.userID == nil, "an id is only ever the backend's")
        let registration = StoredRegistration(
            credential: [UInt8](repeating: 4, count: 16), sealedRecord: [1, 5])
        func upgrade(from credential: LegacyCredential) throws -> AccountChangeOutcome {
            try make().change(
                bob.number, if: .legacy(credential), applying: .upgrade(registration), at: 300,
                recording: .counting)
        }
        #expect(try upgrade(from: LegacyCredential(rung: .hmacMD5Time, sealed: [1, 4])) == .missing)
        #expect(try upgrade(from: credential) == .yes(ended: []))
        #expect(try upgrade(from: credential) == .missing, "once")
        account = try #require(try make().account(bob.number))
        #expect(account.legacy == nil && account.registration == registration && account.userID == nil)

        #expect(try change(.setUserID(7, reserving: nil)) == .taken, "ada's")
        #expect(try change(.setUserID(22, reserving: nil)) == .yes(ended: []))
        #expect(try change(.setUserID(nil, reserving: nil)) == .yes(ended: []))
        #expect(try make().account(bob.number)?.userID == nil)
        #expect(try change(.setUserID(22, reserving: nil)) == .yes(ended: []))

        #expect(try change(.remove) == .yes(ended: []))
        account = try #require(try make().account(bob.number))
        #expect(account.state == .removed && account.registration == nil && account.userID == 22)
        for refused in [AccountChange.unlock, .lock, .remove, .register(registration, keeping: nil)] {
            #expect(try change(refused) == .missing, "removed is for ever")
        }
        #expect(try make().insert(accountDraft("bob"), recording: .counting) == .taken(.name))
        #expect(try make().accounts(of: bob.app, after: bob.number - 1, limit: 1).map(\.state) == [.removed])
    }

    private func resets(of ada: Account) throws {
        func reset(_ byte: UInt8, made: Int64 = 1, until: Int64 = 1_000) -> StoredReset {
            StoredReset(codeHash: [UInt8](repeating: byte, count: 32), made: made, until: until)
        }
        let registration = StoredRegistration(
            credential: [UInt8](repeating: 9, count: 16), sealedRecord: [1, 7])
        func use(_ hash: [UInt8], at now: Int64) throws -> AccountChangeOutcome {
            try make().change(
                ada.number, if: .reset(codeHash: hash), applying: .register(registration, keeping: nil),
                at: now,
                recording: .counting)
        }
        func apply(_ change: AccountChange, at now: Int64) throws -> AccountChangeOutcome {
            try make().change(ada.number, if: .anything, applying: change, at: now, recording: .counting)
        }
        func add(_ reset: StoredReset) throws -> AccountChangeOutcome {
            try apply(.addReset(reset), at: reset.made)
        }
        #expect(try use(reset(6).codeHash, at: 1) == .missing, "there is none")
        // Five live side by side; a sixth takes no other's place.
        let five = (1...5 as ClosedRange<UInt8>).map { reset($0, until: 1_000 + Int64($0)) }
        for each in five { #expect(try add(each) == .yes(ended: [])) }
        #expect(try add(reset(6)) == .refused(.full(until: 1_001)))
        #expect(try make().account(ada.number)?.resets == five)
        #expect(try use([6], at: 999) == .missing)
        #expect(try use(reset(6).codeHash, at: 999) == .missing)
        #expect(try use(five[0].codeHash, at: 1_001) == .missing, "run out")
        #expect(try use(five[2].codeHash, at: 999) == .yes(ended: []))
        #expect(try use(five[2].codeHash, at: 999) == .missing, "once")
        #expect(try use(five[3].codeHash, at: 999) == .missing, "with it, the others are used up")
        let after = try #require(try make().account(ada.number))
        #expect(after.registration == registration && after.resets.isEmpty)
        // After five in a day there is one an hour.
        for each in five { #expect(try add(each) == .yes(ended: [])) }
        #expect(try add(reset(6, made: 2_000, until: 2_100)) == .refused(.early(until: 3_601)))
        #expect(try add(reset(6, made: 3_601, until: 3_700)) == .yes(ended: []))
        #expect(try add(reset(7, made: 3_701, until: 3_800)) == .refused(.early(until: 7_201)))
        #expect(try make().account(ada.number)?.resets.count == 5, "those that count for nothing are gone")
        // One in place of all others is made at any time.
        let last = reset(8, made: 3_702, until: 9_000)
        #expect(try apply(.replaceResets(last), at: 3_702) == .yes(ended: []))
        #expect(try make().account(ada.number)?.resets == [last])
        #expect(try use(reset(6).codeHash, at: 3_650) == .missing, "withdrawn")
        #expect(try use(last.codeHash, at: 8_999) == .yes(ended: []))
    }
}
