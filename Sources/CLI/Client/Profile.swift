import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

/// What a client knows about one server: where it is, whom to trust there, and the key of the app version it plays.
struct Profile: Sendable {
    var url: String
    var keyID: KeyID
    var scheme: SchemeName
    /// Schemes that name them in each request; otherwise empty.
    var platform = ""
    var version = ""
    /// Seconds east of UTC, for schemes that send a wall clock.
    var timezoneOffset = 0
    /// Where form-md5's private key stands before the MD5 is made.
    var formMD5Key = FormMD5.KeyPlace.pair
    var pins: [Trust.Pin] = []
    /// For RSA keys, which do not say it themselves.
    var algorithm: KeyAlgorithm?
    /// The Ed25519 public key, 32 bytes, that the server's own answers verify under; nil where it is not known.
    var authorityKey: [UInt8]?
    /// A PEM file with the authorities to trust; nil for the system's.
    var certificates: String?
    /// How the server calls the app; nil where it is to say it.
    var app: String?
    /// Where the server's own routes begin; nil for where they usually do.
    var prefix: String?
    var bearerSecrets = Installation.BearerSecrets.onlyToThePinnedCertificate
    var vault = ProfileVault.Kind.file
    var deviceKeys = DeviceKeyChoice.auto
    /// Random: tells this profile's items from others' in a place that they share.
    var vaultID = Hex.encode(SystemRandom().bytes(8).span)
}

extension Profile {
    var json: JSONValue {
        [
            "url": .string(url), "key_id": .string(keyID.description), "scheme": .string(scheme.rawValue),
            "platform": .string(platform), "version": .string(version),
            "timezone_offset": .integer(Int64(timezoneOffset)), "form_md5_key": .string(formMD5Key.rawValue),
            "pins": .strings(pins.map(\.description)),
            "ca": .optional(certificates), "algorithm": .optional(algorithm?.rawValue),
            "authority_key": .optional(authorityKey.map { Base64.encode($0.span, .url) }),
            "app": .optional(app), "prefix": .optional(prefix),
            "bearer_secrets_to_any_certificate": .bool(bearerSecrets == .toAnyCertificateThatVerifies),
            "device_keys": .string(deviceKeys.rawValue), "vault": .string(vault.rawValue), "vault_id": .string(vaultID),
        ]
    }

    /// What `profile add` wrote. People edit such files, so every value is checked again.
    init(_ bytes: [UInt8], at path: String) throws(Fault) {
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes, dialect: .comments)
        } catch {
            throw Fault(.failed, "\(path): not JSON: \(error)")
        }
        func text(_ name: String) throws(Fault) -> String {
            if let text = document.root[name]?.string { return text }
            throw Fault(.failed, "\(path): \(name): expected a string")
        }
        url = try text("url")
        _ = try Origin.split(url)
        guard let keyID = KeyID(try text("key_id")) else {
            throw Fault(.failed, "\(path): key_id: expected 1 to \(KeyID.longest) visible ASCII characters")
        }
        guard let scheme = SchemeName(rawValue: try text("scheme")), SchemeName.signing.contains(scheme)
        else {
            throw Fault(.failed, "\(path): scheme: expected one of \(SchemeName.signing.map(\.rawValue))")
        }
        self.keyID = keyID
        self.scheme = scheme
        platform = try text("platform")
        version = try text("version")
        if let offset = document.root["timezone_offset"] {
            guard let seconds = document.integer(offset, in: -50_400...50_400) else {
                throw Fault(.failed, "\(path): timezone_offset: expected seconds from -50400 to 50400")
            }
            timezoneOffset = seconds
        }
        if let text = document.root["form_md5_key"]?.string {
            formMD5Key = try Profile.formMD5Key(text, at: "\(path): form_md5_key")
        }
        for element in document.root["pins"]?.elements ?? [] {
            guard let pin = try? Trust.Pin(element.string ?? "") else {
                throw Fault(.failed, "\(path): pins: expected sha256/ and 44 characters of Base64")
            }
            pins.append(pin)
        }
        certificates = document.root["ca"]?.string
        app = document.root["app"]?.string
        if let text = document.root["prefix"]?.string { prefix = try Profile.prefix(text, at: "\(path): prefix") }
        if case .bool(true)? = document.root["bearer_secrets_to_any_certificate"]?.content {
            bearerSecrets = .toAnyCertificateThatVerifies
        }
        if let text = document.root["vault"]?.string { vault = try Profile.vault(text, at: "\(path): vault") }
        if let text = document.root["device_keys"]?.string {
            deviceKeys = try DeviceKeyChoice(text, at: "\(path): device_keys")
        }
        if let text = document.root["vault_id"]?.string { vaultID = text }
        if let text = document.root["authority_key"]?.string { authorityKey = try Profile.authorityKey(text) }
        if let text = document.root["algorithm"]?.string {
            guard let algorithm = KeyAlgorithm(rawValue: text) else {
                throw Fault(.failed, "\(path): algorithm: expected one of \(KeyAlgorithm.allCases.map(\.rawValue))")
            }
            self.algorithm = algorithm
        }
    }

    static func vault(_ text: String, at place: String) throws(Fault) -> ProfileVault.Kind {
        guard let kind = ProfileVault.Kind(rawValue: text) else {
            let names = ProfileVault.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw Fault(.usage, "\(place) `\(text)`: expected one of \(names)")
        }
        return kind
    }

    static func formMD5Key(_ text: String, at place: String) throws(Fault) -> FormMD5.KeyPlace {
        if let key = FormMD5.KeyPlace(rawValue: text) { return key }
        throw Fault(.usage, "\(place) `\(text)`: expected pair or appended")
    }

    /// A path without a slash at its end.
    static func prefix(_ text: String, at place: String) throws(Fault) -> String {
        guard text.hasPrefix("/"), !text.hasSuffix("/"), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Fault(.usage, "\(place) `\(text)`: expected a path such as /countersign/v1")
        }
        return text
    }

    /// As `release add` prints it.
    static func authorityKey(_ text: String) throws(Fault) -> [UInt8] {
        guard let key = Base64.decode(text, .url), key.count == 32 else {
            throw Fault(.usage, "the authority key: expected 43 characters of base64url, as `release add` prints them")
        }
        return key
    }
}
