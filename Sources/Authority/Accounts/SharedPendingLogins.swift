import CountersignHandshake
import CountersignMemory
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// A store that several nodes share, for what a login leaves there between its two requests. All times are by
/// the store's clock.
package protocol SharedLoginStore: Sendable {
    /// Keeps a sealed login for so many milliseconds, at most `capacity` of them. When there are more, some
    /// of the oldest of the holders with the most are removed.
    func addPendingLogin(_ row: PendingLoginRow, milliseconds: Int64, capacity: Int) throws(OperationalError)
    /// Removes the login and returns its sealed state; nil if the id is unknown or the login has expired. If
    /// several nodes call this for one id, exactly one of them gets the state.
    func takePendingLogin(_ id: [UInt8]) throws(OperationalError) -> [UInt8]?
    /// Removes what has expired.
    func expirePendingLogins() throws(OperationalError)

    /// Makes all debits, or those before the first that is refused, in one step that no other call is in
    /// between.
    func debitLogins(_ charges: [SharedCharge]) throws(OperationalError) -> SharedDebitOutcome
    /// Takes back the parts of the debits that have not refilled since.
    func refundLogins(_ debits: [SharedDebit]) throws(OperationalError)
    /// When the bucket at each place will be full, or an earlier time; and the time now.
    func loginLimits(
        at places: [SharedLimitPlace]
    ) throws(OperationalError) -> (now: Int64, fullAt: [Int64])
    /// Removes the buckets that are full.
    func expireLoginLimits() throws(OperationalError)
}

/// A pending login as a store has it.
package struct PendingLoginRow: Sendable, Equatable {
    /// 32 bytes: a digest of the login's id.
    package var id: [UInt8]
    /// 16 bytes that are equal for the logins of one holder.
    package var holder: [UInt8]
    package var sealed: [UInt8]

    package init(id: [UInt8], holder: [UInt8], sealed: [UInt8]) {
        (self.id, self.holder, self.sealed) = (id, holder, sealed)
    }
}

/// Logins that were started at one node and may be finished at any: sealed under a key that is derived from
/// the deployment's keys, in the store that the nodes share. Source: decision 0075.
package struct SharedPendingLogins: PendingLoginTable {
    /// Seconds by which the clock of the node that finishes may be behind.
    private static let mostClockDifference: Int64 = 2

    private let store: any SharedLoginStore
    private let capacity: Int
    private let sealer: MasterKey
    private let holderKey: HMACSHA256

    package init(
        _ keys: AccountKeys, in store: any SharedLoginStore, capacity: Int
    ) throws(OperationalError) {
        func derived(_ purpose: String) -> Secret {
            HKDFSHA512.expand(keys.keys.bytes, info: Array("countersign/1 \(purpose)".utf8), count: 32)
        }
        guard let sealer = MasterKey(derived("pending login")) else {
            throw OperationalError(.failed, message: "pending logins: no key could be derived")
        }
        (self.store, self.capacity, self.sealer) = (store, max(capacity, 1), sealer)
        holderKey = derived("pending login holder").withExposedBytes { HMACSHA256(key: $0) }
    }

    package func add(
        _ login: PendingLogin, of holder: PendingLogin.Holder, at now: Int64
    ) throws(OperationalError) -> [UInt8] {
        let id = SystemRandom().bytes(PendingLogins.idCount)
        guard let plain = PendingLoginState.encode(login, until: now + PendingLogins.lifetime) else {
            throw OperationalError(.failed, message: "pending logins: the login is over")
        }
        let row = PendingLoginRow(
            id: SharedPendingLogins.digest(of: id), holder: name(of: holder),
            sealed: sealer.seal(plain, as: .pendingLogin(id)))
        try store.addPendingLogin(
            row, milliseconds: PendingLogins.lifetime * 1_000, capacity: capacity)
        return id
    }

    package func take(_ id: [UInt8], at now: Int64) throws(OperationalError) -> PendingLogin? {
        // A row that was altered does not open, and is no login.
        guard let sealed = try store.takePendingLogin(SharedPendingLogins.digest(of: id)),
            let plain = try? sealer.open(sealed, as: .pendingLogin(id)),
            let (login, until) = PendingLoginState.decode(plain),
            now < until + SharedPendingLogins.mostClockDifference
        else { return nil }
        return login
    }

    package func expire(at now: Int64) throws(OperationalError) { try store.expirePendingLogins() }

    private static func digest(of id: [UInt8]) -> [UInt8] {
        let digest = SHA256.digest(id.span)
        return digest.indices.map { digest[$0] }
    }

    /// Keyed, so that the store does not list addresses and devices.
    private func name(of holder: PendingLogin.Holder) -> [UInt8] {
        let bytes: [UInt8] =
            switch holder {
            case .address(let address): [0] + address.bytes
            case .device(let device): [1] + device
            }
        let digest = holderKey.authenticate(bytes.span)
        return (0..<16).map { digest[$0] }
    }
}

extension SealBinding {
    fileprivate static func pendingLogin(_ id: [UInt8]) -> SealBinding {
        SealBinding(kind: "pending-login", row: Hex.encode(id.span))
    }
}

/// A pending login as bytes: numbers big-endian, each part of variable length after its length (2 bytes). The
/// length depends on what the client has sent, and not on whether there is such an account.
enum PendingLoginState {
    private static let version: UInt8 = 1

    /// Nil if the login is over.
    static func encode(_ login: PendingLogin, until: Int64) -> Secret? {
        guard let state = login.state else { return nil }
        var writer = Writer()
        writer.add(UInt64(version), count: 1)
        writer.add(UInt64(bitPattern: until), count: 8)
        writer.add(UInt64(bitPattern: login.account ?? 0), count: 8)
        let (binding, device) = (login.binding, login.binding.device)
        for part in [
            login.credential, login.ke1, login.ke2, login.session?.bytes ?? [], binding.account.bytes,
            device.signingKey.bytes, device.agreementKey.bytes,
        ] { writer.add(part) }
        for text in [
            login.purpose.rawValue, login.app.description, binding.app, binding.release, device.kind.rawValue,
            device.name.description, device.keyStorage?.rawValue ?? "",
        ] { writer.add(Array(text.utf8)) }
        writer.add(login.receipt.encoded)
        return Secret(joining: [Secret(taking: &writer.bytes), state])
    }

    static func decode(_ secret: Secret) -> (login: PendingLogin, until: Int64)? {
        let count = secret.count - ServerLogin.stateCount
        guard count > 0 else { return nil }
        let bytes = secret.part(0..<count).withExposedBytes { bytes in bytes.indices.map { bytes[$0] } }
        var reader = Reader(bytes: bytes[...])
        guard reader.number(count: 1) == UInt64(version), let until = reader.number(count: 8),
            let account = reader.number(count: 8), let credential = reader.part(), let ke1 = reader.part(),
            let ke2 = reader.part().flatMap({ try? KE2($0) }), let session = reader.part(),
            let name = reader.part().flatMap({ try? AccountName(checking: $0.span) }),
            let signingKey = reader.part().flatMap({ P256Point($0) }),
            let agreementKey = reader.part().flatMap({ P256Point($0) }),
            let purpose = reader.text().flatMap({ LoginBinding.Purpose(rawValue: $0) }),
            let app = reader.text().flatMap({ AppName($0) }), let boundApp = reader.text(),
            let release = reader.text(), let kind = reader.text().flatMap({ Device.Class(rawValue: $0) }),
            let deviceName = reader.text().flatMap({ Device.Name($0) }), let storage = reader.text(),
            let receipt = reader.part().flatMap({ LoginLimits.Receipt(encoded: $0) }), reader.bytes.isEmpty,
            let login = ServerLogin(ke2, state: secret.part(count..<secret.count))
        else { return nil }
        let device = Device(
            signingKey: signingKey, agreementKey: agreementKey, kind: kind, name: deviceName,
            keyStorage: KeyStorage(rawValue: storage))
        let pending = PendingLogin(
            login, binding: LoginBinding(app: boundApp, account: name, release: release, device: device),
            app: app, purpose: purpose, account: account == 0 ? nil : Int64(bitPattern: account),
            credential: credential, ke1: ke1, receipt: receipt, session: SessionID(session.span))
        return (pending, Int64(bitPattern: until))
    }

    struct Writer {
        var bytes: [UInt8] = []

        mutating func add(_ number: UInt64, count: Int) {
            for index in 0..<count {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - 1 - index))))
            }
        }

        mutating func add(_ part: [UInt8]) {
            add(UInt64(part.count), count: 2)
            bytes += part
        }
    }

    struct Reader {
        var bytes: ArraySlice<UInt8>

        mutating func number(count: Int) -> UInt64? {
            guard bytes.count >= count else { return nil }
            defer { bytes = bytes.dropFirst(count) }
            return bytes.prefix(count).reduce(0) { $0 << 8 | UInt64($1) }
        }

        mutating func part() -> [UInt8]? {
            guard let count = number(count: 2), bytes.count >= Int(count) else { return nil }
            defer { bytes = bytes.dropFirst(Int(count)) }
            return Array(bytes.prefix(Int(count)))
        }

        mutating func text() -> String? { part().map { String(decoding: $0, as: UTF8.self) } }
    }
}
