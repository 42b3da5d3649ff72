import Countersign
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire
import Glibc
import Synchronization

/// Creates victims for a row: opens their accounts, and gives each the app.
package struct VictimFactory: VictimSource {
    /// Creates an account at the row's server, and returns its number.
    package typealias AccountEnrolment =
        @Sendable (_ name: String, _ number: Int64, _ password: String?) async throws -> Void

    let row: RowProfile
    let key: AppKey
    /// The release key; nil in legacy rows.
    let release: ReleaseKey?
    let bank: Bank
    let words: WordList
    let authorities: StageCertificates
    let folder: String
    /// The origin that the app calls by default.
    let origin: String
    let enrol: AccountEnrolment

    /// Counts over all rows, so that a name does not indicate the row.
    private static let counter = Atomic<Int64>(0)

    package func newVictim(_ device: DeviceSetup) async throws -> any Victim {
        let number = 1_000 + VictimFactory.counter.add(1, ordering: .relaxed).newValue
        let name = device.claim?.name ?? "user\(number)"
        let password = device.claim?.password ?? words.random()
        let typed = row.hasPasswords ? password : nil
        if device.claim == nil { try await enrol(name, number, typed) }
        let own = "\(folder)/user\(number)"
        for path in [own, "\(own)/device", "\(own)/enclave"] { try Files.makeFolder(path) }
        let device = VictimDevice(
            baseURL: device.origin ?? origin, folder: "\(own)/device", enclave: "\(own)/enclave",
            behind: device.behind, trust: try trust, transport: try transport(device))
        switch row.scheme {
        case .countersign:
            return try SDKVictim(name: name, password: password, key: try ours(), by: .opaque, on: device)
        case .messageSignaturesWithPassword:
            return try SDKVictim(
                name: name, password: password, key: try ours(), by: .passwordIsSent, on: device)
        case .ladder, .formMD5, .apiKey, .tokens, .token, .openRoute:
            return try LegacyVictim(
                name: name, password: typed, scheme: try scheme(), login: login,
                bodyFormat: row.scheme == .apiKey(.authV4) ? .json : .form,
                remembering: remembered(typed), stating: row.scheme == .token ? BankApp.version : nil,
                on: device)
        }
    }

    private var trust: Trust {
        get throws {
            guard case .tls(let app) = row.transport else { return .system }
            return try authorities.trust(app)
        }
    }

    private func transport(_ device: DeviceSetup) throws -> TransportOptions {
        var options = authorities.transport()
        options.addresses = [try Trust.Host(BankApp.host): try Trust.Host("127.0.0.1")]
        if let name = device.host { options.addresses[try Trust.Host(name)] = try Trust.Host("127.0.0.1") }
        return options
    }

    private func ours() throws -> ReleaseKey {
        guard let release else { throw LabError("\(row.name): expected a release key") }
        return release
    }

    /// The scheme that the app signs with. Behind the gateway an app that signed nothing uses form-md5,
    /// except in the rows of scheme `token` and of open routes: in all others the gateway accepts no token
    /// alone.
    private func scheme() throws -> LegacyScheme {
        let secret = key.secret.withExposedBytes { $0.text }
        switch (row.scheme, row.server) {
        case (.ladder, .reference), (.tokens, .reference), (.token, _), (.openRoute, _): return .unsigned
        case (.apiKey(.authV1), _): return try .authV1(key: key.id, secret: secret)
        case (.apiKey(.authV2), _): return try .authV2(clientID: key.id, secret: secret)
        case (.apiKey(.authV4), _): return try .authV4(clientID: key.id, secret: secret)
        case (.apiKey(.sigV4), _):
            guard let id = KeyID(key.id) else { throw LabError("\(key.id): not a key id") }
            return .speaking(SigV4(), as: Credentials(keyID: id, key: SigningKey(key.secret)))
        default:
            return try .formMD5(
                appID: key.id, privateKey: secret, platform: BankApp.platform, version: BankApp.version)
        }
    }

    private var login: LegacyLogin? {
        switch row.scheme {
        case .ladder(let rung): LegacyLogin(rung.wire(key.ladder), signing: .none)
        case .tokens, .token, .openRoute: LegacyLogin(.plainPost, signing: .none)
        case .formMD5: LegacyLogin(.md5)
        default: nil
        }
    }

    /// The text that such an app stores in its preferences.
    private func remembered(_ password: String?) -> String? {
        guard let password else { return nil }
        return row.scheme == .ladder(.base64)
            ? Base64.encode(Array(password.utf8).span, as: .standard) : password
    }
}

extension RowProfile.LadderRung {
    /// The rung, with the app's salt or key if it has one.
    func wire(_ ladder: String) -> LegacyLogin.Rung {
        switch self {
        case .plainGet: .plainGet
        case .plainPost: .plainPost
        case .base64: .base64
        case .md5: .md5
        case .md5Salt: .md5Salt(ladder)
        case .hmacMD5: .hmacMD5(key: ladder)
        case .hmacMD5Time: .hmacMD5Time(key: ladder)
        }
    }
}

/// The device of a victim.
package struct VictimDevice: Sendable {
    /// The origin that the app calls: `http://bank.test:12345`, or the attacker's.
    package var baseURL: String
    /// The files that a backup contains.
    package var folder: String
    /// The folder that no backup contains: it stands for a keychain's own key, which does not leave the
    /// device.
    package var enclave: String
    /// Seconds by which the device's clock is behind.
    package var behind: Int64
    package var trust: Trust
    package var transport: TransportOptions

    var isPlain: Bool { baseURL.hasPrefix("http:") }

    var clock: DeviceClock {
        let (system, behind) = (DeviceClock.system, behind)
        return DeviceClock(wall: { system.wall() - behind }, monotonic: system.monotonic)
    }

    /// A vault whose file is in the backup but whose key is not, like keychain items for this device only.
    var vault: Vault {
        let file = SealedFile("\(folder)/items.sealed", guardedBy: KeyFileGuard("\(enclave)/items.key"))
        return Vault(file, locks: VaultLocks(folder: enclave))
    }
}
