import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@Suite struct LegacyLoginTests {
    private let masterKey: MasterKey
    private let cost: HashCost
    private let login: LegacyLoginVerifier
    private let account: LegacyAccountID
    private let settings = LadderSettings(salt: secret("salt"), key: secret("key"), timezoneOffset: 28_800)
    /// The first second of a minute.
    private let now: Int64 = 1_709_251_140

    init() throws {
        masterKey = try #require(MasterKey(MasterKey.random()))
        cost = try #require(HashCost(memory: 8, passes: 1))
        login = try LegacyLoginVerifier(masterKey: masterKey, cost: cost)
        account = LegacyAccountID(
            app: try #require(AppName("demo")), name: try AccountName(normalizing: "17"))
    }

    private func stored(_ rung: Rung, _ password: String, for account: LegacyAccountID? = nil) throws
        -> LegacyLoginVerifier.StoredCredential
    {
        let account = account ?? self.account
        let kept = try LoginLadder.storedValue(of: secret(password), on: rung, settings: settings)
        return LegacyLoginVerifier.StoredCredential(
            account: account,
            credential: try LegacyCredential(
                keeping: kept, on: rung, of: account, under: masterKey, cost: cost))
    }

    private func sent(_ password: String, on rung: Rung, at time: Int64) throws -> PasswordField {
        let kept = try LoginLadder.storedValue(of: secret(password), on: rung, settings: settings)
        return try LoginLadder.sentValue(for: kept, on: rung, settings: settings, at: time).withExposedBytes {
            PasswordField($0)
        }
    }

    @Test("each rung opens for its password, and for nothing else", arguments: Rung.allCases)
    func rungs(_ rung: Rung) throws {
        let row = try stored(rung, "pässword")
        let right = try login.judge(
            sent("pässword", on: rung, at: now), at: rung.endpoint, of: row, settings: settings, time: now)
        #expect(right != .refused)
        #expect((right == .accepted) == (rung != .hmacMD5Time))
        for wrong in ["pässwor", "passwörd", " "] {
            let field = try sent(wrong, on: rung, at: now)
            #expect(
                try login.judge(field, at: rung.endpoint, of: row, settings: settings, time: now) == .refused)
        }
        for door in Rung.LoginEndpoint.allCases where door != rung.endpoint {
            let field = try sent("pässword", on: rung, at: now)
            #expect(try login.judge(field, at: door, of: row, settings: settings, time: now) == .refused)
        }
        #expect(
            try login.judge(
                sent("pässword", on: rung, at: now), at: rung.endpoint, of: nil, settings: settings, time: now
            ) == .refused)
    }

    @Test("another rung's value opens nothing, though the password is the same")
    func otherRungs() throws {
        for rung in Rung.allCases {
            let row = try stored(rung, "password")
            for other in Rung.allCases {
                let same = try sent("password", on: rung, at: now).normalised(for: rung).copied
                let value = try sent("password", on: other, at: now)
                guard value.normalised(for: rung).copied != same else { continue }
                #expect(
                    try login.judge(value, at: rung.endpoint, of: row, settings: settings, time: now)
                        == .refused, "\(other) at \(rung)"
                )
            }
        }
    }

    @Test("a minute that turns between client and server", arguments: turnsTable)
    func minuteTurns(_ row: (sent: Int64, judged: Int64, isAccepted: Bool)) throws {
        let stored = try stored(.hmacMD5Time, "password")
        let field = try sent("password", on: .hmacMD5Time, at: now + row.sent)
        let verdict = try login.judge(
            field, at: .minute, of: stored, settings: settings, time: now + row.judged)
        guard case .acceptedOnce(let use) = verdict else {
            #expect(!row.isAccepted)
            return
        }
        #expect(row.isAccepted)
        #expect(use.minute == LadderMinute(at: now + row.sent, settings: settings))
        // A minute use may be removed only when no clock accepts its value any more.
        #expect(
            try login.judge(field, at: .minute, of: stored, settings: settings, time: use.until - 1)
                == verdict)
        #expect(
            try login.judge(field, at: .minute, of: stored, settings: settings, time: use.until) == .refused)
    }

    @Test("the same use has one key; another minute, account or app has another")
    func replayKeys() throws {
        let other = LegacyAccountID(
            app: try #require(AppName("demo")), name: try AccountName(normalizing: "18"))
        let elsewhere = LegacyAccountID(
            app: try #require(AppName("other")), name: try AccountName(normalizing: "17"))
        var keys: [[UInt8]] = []
        for (account, time) in [(account, now), (account, now + 60), (other, now), (elsewhere, now)] {
            let stored = try stored(.hmacMD5Time, "password", for: account)
            for moment in [time, time + 59] {
                let field = try sent("password", on: .hmacMD5Time, at: time)
                guard
                    case .acceptedOnce(let use) = try login.judge(
                        field, at: .minute, of: stored, settings: settings, time: moment)
                else {
                    Issue.record("refused")
                    continue
                }
                keys.append(use.replayKey.array)
            }
        }
        #expect(keys.count == 8)
        for pair in stride(from: 0, to: keys.count, by: 2) { #expect(keys[pair] == keys[pair + 1]) }
        #expect(Set(keys).count == 4)
    }

    @Test("a credential opens in its own row and on its own rung only")
    func moved() throws {
        let good = try stored(.md5, "password")
        let other = LegacyAccountID(
            app: try #require(AppName("demo")), name: try AccountName(normalizing: "18"))
        var rung = good
        rung.credential.rung = .plainPost
        var altered = good
        altered.credential.sealed[30] ^= 1
        for row in [
            LegacyLoginVerifier.StoredCredential(account: other, credential: good.credential), rung, altered,
        ] {
            let field = try sent("password", on: .md5, at: now)
            #expect(throws: Refusal.self) {
                try login.judge(field, at: .form, of: row, settings: settings, time: now)
            }
        }
    }

    @Test("without the app's key the last rung is closed")
    func noKey() throws {
        let row = try stored(.hmacMD5Time, "password")
        let field = try sent("password", on: .hmacMD5Time, at: now)
        let without = LadderSettings(timezoneOffset: settings.timezoneOffset)
        #expect(try login.judge(field, at: .minute, of: row, settings: without, time: now) == .refused)
    }

    @Test("nothing that a login sends stands in what is stored", arguments: Rung.allCases)
    func stolenRow(_ rung: Rung) throws {
        let row = try stored(rung, "a long enough password").credential
        let kept = try LoginLadder.storedValue(
            of: secret("a long enough password"), on: rung, settings: settings
        ).copied
        #expect(row.sealed.firstRange(of: kept) == nil)
        // Even with the master key, except on the last rung, whose server needs the value to compute.
        let binding = SealBinding(kind: "legacy-credential-\(rung.rawValue)", app: "demo", row: "17")
        let opened = try masterKey.open(row.sealed, as: binding).copied
        #expect((opened.firstRange(of: kept) != nil) == (rung == .hmacMD5Time))
    }

    @Test("a value that is too long is refused, even if it begins like the right one")
    func tooLong() throws {
        let password = String(repeating: "x", count: PasswordField.longest)
        let row = try stored(.plainPost, password)
        for (extra, verdict) in [
            ("", LegacyLoginVerifier.Verdict.accepted), ("x", .refused), ("xx", .refused),
        ] {
            let field = PasswordField(Array((password + extra).utf8).span)
            #expect(try login.judge(field, at: .form, of: row, settings: settings, time: now) == verdict)
        }
    }
}

private func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }

/// Seconds after the minute's start: the time of sending and the time of verification.
private let turnsTable: [(sent: Int64, judged: Int64, isAccepted: Bool)] = [
    (0, 0, true), (0, 59, true), (59, 60, true), (0, 119, true), (59, 119, true), (0, 120, false),
    (59, 120, false),
    // A client ahead of the server: the current minute and the one before are accepted.
    (60, 59, false), (60, 60, true), (0, -1, false),
]
