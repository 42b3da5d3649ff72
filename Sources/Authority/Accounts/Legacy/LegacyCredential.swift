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
        keeping kept: Secret, on rung: Rung, of account: LegacyAccountID, under sealer: any Sealer,
        cost: HashCost, random: some RandomSource = SystemRandom()
    ) throws(SealError) {
        let needed = try LegacyCredential.needed(of: kept, on: rung, cost: cost, random: random)
        self.rung = rung
        sealed = sealer.seal(needed, as: account.binding(for: rung), random: random)
    }

    /// One that no account has and no store keeps, for the same work where there is no account.
    init(
        decoyOn rung: Rung, of account: LegacyAccountID, under sealer: any Sealer, cost: HashCost,
        random: some RandomSource
    ) throws(SealError) {
        let needed = try LegacyCredential.needed(
            of: Secret(random: 32), on: rung, cost: cost, random: random)
        self.rung = rung
        sealed = sealer.sealForMemory(needed, as: account.binding(for: rung))
    }

    private static func needed(
        of kept: Secret, on rung: Rung, cost: HashCost, random: some RandomSource
    ) throws(SealError) -> Secret {
        switch rung.endpoint {
        case .query, .form: try PasswordHash(of: kept, cost: cost, random: random).encoded
        case .minute: kept
        }
    }

    /// The rung's value; throws an ``OperationalError`` if the row was altered or moved.
    func open(of account: LegacyAccountID, under sealer: any Sealer) throws(OperationalError) -> Secret {
        do {
            return try sealer.open(sealed, as: account.binding(for: rung))
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
        .legacyCredential(of: name, app: app, rung: rung.rawValue)
    }
}

extension SealBinding {
    static func legacyCredential(of name: String, app: String, rung: String) -> SealBinding {
        SealBinding(kind: "legacy-credential-\(rung)", app: app, row: name)
    }
}
