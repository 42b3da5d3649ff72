import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Judges the logins at an app's legacy endpoints. Pure: time, settings and stored row are arguments. It
/// takes equally long for an unknown name, or one on a rung of another endpoint, as for a known one: the
/// computation depends on the endpoint alone.
///
/// At ``Rung/LoginEndpoint/query`` and ``Rung/LoginEndpoint/form`` it computes a slow hash; call it on the
/// hashing pool.
package struct LegacyLoginVerifier: Sendable {
    /// An account's identity and its stored legacy credential.
    package struct StoredCredential: Sendable {
        package var account: LegacyAccountID
        package var credential: LegacyCredential

        package init(account: LegacyAccountID, credential: LegacyCredential) {
            self.account = account
            self.credential = credential
        }
    }

    package enum Verdict: Sendable, Equatable {
        case refused
        case accepted
        /// Accepted if this use has not been recorded: the caller inserts it if absent, and refuses
        /// otherwise.
        case acceptedOnce(MinuteUse)
    }

    private let masterKey: any Sealer
    private let hashed: StoredCredential
    private let timed: StoredCredential
    private let noKey: Secret

    /// Makes decoy credentials from random values, which no password matches. Computes a slow hash of
    /// `cost`, which should be the cost of the accounts' hashes.
    package init(
        masterKey: any Sealer, cost: HashCost, random: some RandomSource = SystemRandom()
    ) throws(SealError) {
        self.masterKey = masterKey
        hashed = try LegacyLoginVerifier.decoy(on: .md5, masterKey: masterKey, cost: cost, random: random)
        timed = try LegacyLoginVerifier.decoy(
            on: .hmacMD5Time, masterKey: masterKey, cost: cost, random: random)
        noKey = Secret(random: 16)
    }

    /// `stored` is nil if no account of that name has a legacy credential. `time` is in Unix seconds. Throws
    /// `unavailable` if the login cannot be judged.
    package func judge(
        _ field: PasswordField, at endpoint: Rung.LoginEndpoint, of stored: StoredCredential?,
        settings: LadderSettings, time: Int64
    ) throws(Refusal) -> Verdict {
        let decoy = endpoint == .minute ? timed : hashed
        var judged = decoy
        if let stored, stored.credential.rung.endpoint == endpoint { judged = stored }
        let rung = judged.credential.rung
        let needed: Secret
        do {
            needed = try judged.credential.open(of: judged.account, under: masterKey)
        } catch {
            throw Refusal(error, in: "legacy login")
        }
        let value = field.normalised(for: rung)
        let verdict =
            switch endpoint {
            case .query, .form: try LegacyLoginVerifier.compare(value, withHash: needed)
            case .minute:
                compare(value, withMinutesOf: needed, of: judged.account, settings: settings, time: time)
            }
        // A decoy cannot match; this check refuses it all the same.
        return judged.account == decoy.account ? .refused : verdict
    }

    private static func compare(_ value: Secret, withHash encoded: Secret) throws(Refusal) -> Verdict {
        guard let hash = PasswordHash(encoded: encoded) else {
            throw Refusal(
                OperationalError(.failed, message: "a legacy credential cannot be read by this build"),
                in: "legacy login")
        }
        do {
            return try hash.matches(value) == .equal && value.count <= PasswordField.longest
                ? .accepted : .refused
        } catch {
            throw LegacyLoginVerifier.noMemory
        }
    }

    static let noMemory = Refusal(.unavailable, detail: "no memory for a password hash", retryAfter: 1)

    /// Computes and compares the values of this minute and of the previous one, always both.
    private func compare(
        _ value: Secret, withMinutesOf kept: Secret, of account: LegacyAccountID, settings: LadderSettings,
        time: Int64
    ) -> Verdict {
        // An app without a key accepts no such login; the same work is done all the same.
        let key = LoginLadder.minuteKey(settings.key ?? noKey)
        var verdict = Verdict.refused
        let now = LadderMinute(at: time, settings: settings)
        for minute in [now, now.previous] {
            let expected = LoginLadder.sentValue(for: kept, at: minute, key: key)
            let comparison = expected.withExposedBytes { expected in
                value.withExposedBytes { ConstantTime.equals(expected, $0) }
            }
            if comparison == .equal {
                verdict = .acceptedOnce(MinuteUse(of: account, minute: minute, settings: settings))
            }
        }
        return settings.key == nil ? .refused : verdict
    }

    private static func decoy(
        on rung: Rung, masterKey: any Sealer, cost: HashCost, random: some RandomSource
    ) throws(SealError) -> StoredCredential {
        let account = LegacyAccountID.decoy(on: rung)
        return StoredCredential(
            account: account,
            credential: try LegacyCredential(
                decoyOn: rung, of: account, under: masterKey, cost: cost, random: random))
    }
}

/// One account's use of one minute's value. The value is valid for two minutes, and accepted once: an
/// eavesdropper can record it from a login.
package struct MinuteUse: Sendable, Hashable {
    package let account: LegacyAccountID
    package let minute: LadderMinute
    /// Unix seconds from which the clock refuses the value, so that the use may be forgotten.
    package let until: Int64

    init(of account: LegacyAccountID, minute: LadderMinute, settings: LadderSettings) {
        self.account = account
        self.minute = minute
        until = (minute.number + 2) * 60 - Int64(settings.timezoneOffset)
    }

    /// Thirty-two bytes that identify the use in a replay guard. They do not depend on the sent value,
    /// because two accounts with the same password send the same value in the same minute.
    package var replayKey: ShortBytes {
        var hash = SHA256()
        for part in ["countersign/1 minute use", account.app, account.name, "\(minute.number)"] {
            let bytes = Array(part.utf8)
            // Length prefixes make the encoding unambiguous.
            hash.update(Array("\(bytes.count):".utf8).span)
            hash.update(bytes.span)
        }
        return ShortBytes(hash.finish())
    }
}

extension ReplayEntry {
    /// The scope is no release's key id, since none may begin like a token.
    package init?(spending use: MinuteUse, at now: Int64) {
        guard let scope = KeyID("s_minute-use") else { return nil }
        // The end of the minute. It lies within 60 s of now while the value is accepted, and the guard
        // remembers the entry for at least 60 s after it, until the clock refuses the value.
        self.init(
            keyID: scope, scheme: .formMD5, replayKey: use.replayKey, created: use.until - 60, now: now)
    }
}
