import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Judges what arrived at `/login/login.php` and `/login/loginhmac.php`. Pure: time, settings and stored row are
/// arguments. Takes as long for a name that is not known, or is on a rung of another door, as for one that is: what
/// is computed depends on the door alone.
///
/// Through ``Rung/Door/query`` and ``Rung/Door/form`` it computes a slow hash: for the hashing pool.
package struct LegacyLogin: Sendable {
    /// The row of an account and what is stored with it.
    package struct Stored: Sendable {
        package var account: LegacyAccountID
        package var credential: LegacyCredential

        package init(_ account: LegacyAccountID, _ credential: LegacyCredential) {
            self.account = account
            self.credential = credential
        }
    }

    package enum Verdict: Sendable, Equatable {
        case refused
        case accepted
        /// Accepted if this use has not been seen: whoever asked inserts it, if absent, and refuses otherwise.
        case acceptedOnce(MinuteUse)
    }

    private let masterKey: MasterKey
    private let hashed: Stored
    private let timed: Stored
    private let noKey: Secret

    /// Makes the rows that stand in for accounts which are not there, from random values: nothing opens them. Computes
    /// a slow hash of `cost`, which should be what the accounts' rows have.
    package init(
        masterKey: MasterKey, cost: HashCost, random: some RandomSource = SystemRandom()
    ) throws(PasswordHash.OutOfMemory) {
        self.masterKey = masterKey
        hashed = try LegacyLogin.decoy(on: .md5, masterKey, cost, random)
        timed = try LegacyLogin.decoy(on: .hmacMD5Time, masterKey, cost, random)
        noKey = Secret(random: 16)
    }

    /// `stored` is nil where no account of that name has a credential. `time` is in Unix seconds.
    package func judge(
        _ field: PasswordField, at door: Rung.Door, of stored: Stored?, _ settings: LadderSettings, at time: Int64
    ) throws(LegacyLoginFault) -> Verdict {
        let decoy = door == .minute ? timed : hashed
        var judged = decoy
        if let stored, stored.credential.rung.door == door { judged = stored }
        let rung = judged.credential.rung
        let needed: Secret
        do throws(Fault) {
            needed = try judged.credential.open(of: judged.account, under: masterKey)
        } catch {
            throw .fault(error)
        }
        let value = field.meant(on: rung)
        let verdict =
            switch door {
            case .query, .form: try LegacyLogin.compare(value, withHash: needed)
            case .minute: compare(value, withMinutesOf: needed, of: judged.account, settings, at: time)
            }
        // A decoy cannot match; that nothing comes of it if it did is said here all the same.
        return judged.account == decoy.account ? .refused : verdict
    }

    private static func compare(_ value: Secret, withHash encoded: Secret) throws(LegacyLoginFault) -> Verdict {
        guard let hash = PasswordHash(encoded: encoded) else {
            throw .fault(Fault(.failed, "a legacy credential cannot be read by this build"))
        }
        do throws(PasswordHash.OutOfMemory) {
            return try hash.matches(value) == .equal && value.count <= PasswordField.longest ? .accepted : .refused
        } catch {
            throw .outOfMemory
        }
    }

    /// This minute's value and the last one's are both computed and both compared.
    private func compare(
        _ value: Secret, withMinutesOf kept: Secret, of account: LegacyAccountID, _ settings: LadderSettings,
        at time: Int64
    ) -> Verdict {
        // An app without a key has no such logins; the work is done all the same.
        let key = LoginLadder.minuteKey(settings.key ?? noKey)
        var verdict = Verdict.refused
        let now = Minute(time, settings)
        for minute in [now, now.previous] {
            let expected = LoginLadder.sent(kept, at: minute, key: key)
            let comparison = expected.withExposedBytes { expected in
                value.withExposedBytes { ConstantTime.equals(expected, $0) }
            }
            if comparison == .equal { verdict = .acceptedOnce(MinuteUse(account, minute, settings)) }
        }
        return settings.key == nil ? .refused : verdict
    }

    private static func decoy(
        on rung: Rung, _ masterKey: MasterKey, _ cost: HashCost, _ random: some RandomSource
    ) throws(PasswordHash.OutOfMemory) -> Stored {
        let account = LegacyAccountID.decoy(on: rung)
        return Stored(
            account,
            try LegacyCredential(
                keeping: Secret(random: 32), on: rung, of: account, under: masterKey, cost: cost, random: random))
    }
}

/// A login could not be judged; it is refused as `unavailable`.
package enum LegacyLoginFault: Error, Sendable, Equatable {
    case fault(Fault)
    case outOfMemory
}
