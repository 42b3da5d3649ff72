import Countersign
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc
import Synchronization

/// Finds victims for a row: opens their accounts, and gives each the app.
package struct Cast: Casting {
    /// Makes an account at the row's server, and tells its number.
    package typealias Enrolling = @Sendable (_ name: String, _ number: Int64, _ password: String?) async throws -> Void

    let row: RowProfile
    let key: AppKey
    /// Of our own rows.
    let release: ReleaseKey?
    let bank: Bank
    let words: WordList
    let authorities: Authorities
    let folder: String
    /// Where the app calls, where nobody led it elsewhere.
    let origin: String
    let enrol: Enrolling

    /// Over all rows: a name is no hint at a row.
    private static let counter = Atomic<Int64>(0)

    package func newVictim(_ device: DeviceSetup) async throws -> any Victim {
        let number = 1_000 + Cast.counter.add(1, ordering: .relaxed).newValue
        let name = device.claim?.name ?? "user\(number)"
        let password = device.claim?.password ?? words.random()
        let typed = row.hasPasswords ? password : nil
        if device.claim == nil { try await enrol(name, number, typed) }
        let own = "\(folder)/user\(number)"
        for path in [own, "\(own)/device", "\(own)/enclave"] { try Files.makeFolder(path) }
        let device = Device(
            baseURL: device.origin ?? origin, folder: "\(own)/device", enclave: "\(own)/enclave",
            behind: device.behind, trust: try trust, transport: try transport(device))
        switch row.scheme {
        case .countersign: return try OwnVictim(name, password, try ours(), by: .opaque, on: device)
        case .messageSignaturesWithPassword:
            return try OwnVictim(name, password, try ours(), by: .passwordIsSent, on: device)
        case .ladder, .formMD5, .apiKey, .tokens, .token, .openRoute:
            return try LegacyVictim(
                name, typed, try scheme(), login, writing: row.scheme == .apiKey(.authV4) ? .json : .form,
                remembering: remembered(typed), stating: row.scheme == .token ? Setting.version : nil, on: device)
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
        options.addresses = [try Trust.Host(Setting.host): try Trust.Host("127.0.0.1")]
        if let name = device.host { options.addresses[try Trust.Host(name)] = try Trust.Host("127.0.0.1") }
        return options
    }

    private func ours() throws -> ReleaseKey {
        guard let release else { throw StageFault("\(row.name): expected a release key") }
        return release
    }

    /// How the app signs. Behind the gateway an app that signed nothing signs its requests as form-md5 has
    /// it, but in the rows of scheme `token` and of open routes: elsewhere a token alone opens nothing there.
    private func scheme() throws -> LegacyScheme {
        let secret = key.secret.withExposedBytes { $0.text }
        switch (row.scheme, row.server) {
        case (.ladder, .reference), (.tokens, .reference), (.token, _), (.openRoute, _): return .unsigned
        case (.apiKey(.authV1), _): return try .authV1(key: key.id, secret: secret)
        case (.apiKey(.authV2), _): return try .authV2(clientID: key.id, secret: secret)
        case (.apiKey(.authV4), _): return try .authV4(clientID: key.id, secret: secret)
        case (.apiKey(.sigV4), _):
            guard let id = KeyID(key.id) else { throw StageFault("\(key.id): not a key id") }
            return .speaking(SigV4(), as: Credentials(keyID: id, key: SigningKey(key.secret)))
        default:
            return try .formMD5(
                appID: key.id, privateKey: secret, platform: Setting.platform, version: Setting.version)
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

    /// What such an app leaves in its preferences.
    private func remembered(_ password: String?) -> String? {
        guard let password else { return nil }
        return row.scheme == .ladder(.base64) ? Base64.encode(Array(password.utf8).span, .standard) : password
    }
}

extension RowProfile.LadderRung {
    /// With the salt or key that lies in the app, where the rung has one.
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
