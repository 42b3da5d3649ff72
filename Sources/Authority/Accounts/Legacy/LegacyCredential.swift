import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What is stored so that an account can go on using its rung: always under the master key, and, but for the last rung,
/// slow-hashed beneath. Neither a stolen database nor a database with its master key holds what a login sends.
///
/// The last rung is the exception: its server computes with `h`, so `h` itself is sealed. It is worth a login until
/// the account is moved off the ladder; `app policy` and the lab say so.
package struct LegacyCredential: Sendable, Equatable {
    package var rung: Rung
    package var sealed: [UInt8]

    /// As a store hands it back.
    package init(rung: Rung, sealed: [UInt8]) {
        self.rung = rung
        self.sealed = sealed
    }

    /// Wraps what a server in the field keeps. Computes a slow hash: for the hashing pool.
    package init(
        keeping kept: Secret, on rung: Rung, of account: LegacyAccountID, under masterKey: MasterKey, cost: HashCost,
        random: some RandomSource = SystemRandom()
    ) throws(PasswordHash.OutOfMemory) {
        let needed =
            switch rung.door {
            case .query, .form: try PasswordHash(of: kept, cost: cost, random: random).encoded
            case .minute: kept
            }
        self.rung = rung
        sealed = masterKey.seal(needed, as: account.binding(for: rung), random: random)
    }

    /// What the rung needs; a ``Fault`` where the row was altered or moved.
    func open(of account: LegacyAccountID, under masterKey: MasterKey) throws(Fault) -> Secret {
        do {
            return try masterKey.open(sealed, as: account.binding(for: rung))
        } catch {
            throw Fault(.failed, "account \(account.name): its sealed legacy credential does not open")
        }
    }
}

/// Which account a legacy credential belongs to: part of its seal, so that one row's credential opens no other's.
package struct LegacyAccountID: Sendable, Hashable {
    /// The app's name; empty, which no app's is, for rows that stand in for nobody.
    let app: String
    /// The account's name: it never changes, is nobody else's even once the account is removed, and is known before there is
    /// a row.
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

    /// The rung is bound too: a value of the last rung must not be taken for a hash, nor the other way round.
    fileprivate func binding(for rung: Rung) -> SealBinding {
        SealBinding(kind: "legacy-credential-\(rung.rawValue)", app: app, row: name)
    }
}
