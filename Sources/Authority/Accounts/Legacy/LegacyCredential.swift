import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The stored credential of an account's rung: always sealed under the master key and, except on the last
/// rung, slow-hashed before. Neither a stolen database nor a database with its master key then contains
/// what a login sends.
///
/// The last rung is the exception: its server computes with `h`, so `h` itself is sealed. `h` suffices for
/// a login until the account leaves the ladder; `app policy` and the lab say so.
package struct LegacyCredential: Sendable, Equatable {
    package var rung: Rung
    package var sealed: [UInt8]

    /// From the values of a store's row.
    package init(rung: Rung, sealed: [UInt8]) {
        self.rung = rung
        self.sealed = sealed
    }

    /// Wraps what a legacy server keeps. Computes a slow hash; call it on the hashing pool.
    package init(
        keeping kept: Secret, on rung: Rung, of account: LegacyAccountID, under masterKey: MasterKey,
        cost: HashCost,
        random: some RandomSource = SystemRandom()
    ) throws(SealError) {
        let needed =
            switch rung.endpoint {
            case .query, .form: try PasswordHash(of: kept, cost: cost, random: random).encoded
            case .minute: kept
            }
        self.rung = rung
        sealed = masterKey.seal(needed, as: account.binding(for: rung), random: random)
    }

    /// The rung's value; throws an ``OperationalError`` if the row was altered or moved.
    func open(of account: LegacyAccountID, under masterKey: MasterKey) throws(OperationalError) -> Secret {
        do {
            return try masterKey.open(sealed, as: account.binding(for: rung))
        } catch {
            throw OperationalError(
                .failed, message: "account \(account.name): its sealed legacy credential does not open")
        }
    }
}

/// The account that a legacy credential belongs to. It is part of the seal, so that one row's credential
/// does not open another's.
package struct LegacyAccountID: Sendable, Hashable {
    /// The app's name. Decoys have an empty one, which no app has.
    let app: String
    /// The account's name: it never changes, is never reused, even after the account is removed, and is
    /// known before the row exists.
    let name: String

    package init(app: AppName, name: AccountName) {
        self.app = app.description
        self.name = name.description
    }

    private init(decoyOn rung: Rung) {
        app = ""
        name = "decoy of \(rung.rawValue)"
    }

    static func decoy(on rung: Rung) -> LegacyAccountID { LegacyAccountID(decoyOn: rung) }

    /// The seal also binds the rung: a value of the last rung must not be taken for a hash, nor a hash for
    /// such a value.
    fileprivate func binding(for rung: Rung) -> SealBinding {
        SealBinding(kind: "legacy-credential-\(rung.rawValue)", app: app, row: name)
    }
}
