import Countersign
import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignTransport
import CountersignTrust
import CountersignWire

/// The client's settings for one server: its address, its trust, and the key of the app version that the
/// client acts as.
package struct Profile: Sendable {
    var url: String
    var keyID: KeyID
    var scheme: SchemeName
    /// Schemes that name them in each request; otherwise empty.
    var platform = ""
    var version = ""
    /// Seconds east of UTC, for schemes that send a wall clock.
    var timezoneOffset = 0
    /// Where form-md5's private key stands before the MD5 is made.
    var formMD5Key = FormMD5.KeyPosition.pair
    package var pins: [Trust.Pin] = []
    /// For RSA keys, which do not say it themselves.
    var algorithm: KeyAlgorithm?
    /// The Ed25519 public key, 32 bytes, that the server's own answers verify under; nil where it is not
    /// known.
    var authorityKey: [UInt8]?
    /// The one that the server rotates to; nil where it is not known.
    var nextAuthorityKey: [UInt8]?
    /// A PEM file with the authorities to trust; nil for the system's.
    package var certificates: String?
    /// How the server calls the app; nil where it is to say it.
    var app: String?
    /// Where the server's own routes begin; nil for where they usually do.
    var prefix: String?
    var bearerSecrets = Installation.BearerSecrets.onlyToThePinnedCertificate
    var vault = ProfileVault.Kind.file

    package init(url: String, keyID: KeyID, scheme: SchemeName) {
        (self.url, self.keyID, self.scheme) = (url, keyID, scheme)
    }
}

extension Profile {
    var json: JSONValue {
        [
            "url": .string(url), "key_id": .string(keyID.description), "scheme": .string(scheme.rawValue),
            "platform": .string(platform), "version": .string(version),
            "timezone_offset": .integer(Int64(timezoneOffset)), "form_md5_key": .string(formMD5Key.rawValue),
            "pins": .strings(pins.map(\.description)),
            "ca": .optional(certificates), "algorithm": .optional(algorithm?.rawValue),
            "authority_key": .optional(authorityKey.map { Base64.encode($0.span, as: .url) }),
            "next_authority_key": .optional(nextAuthorityKey.map { Base64.encode($0.span, as: .url) }),
            "app": .optional(app), "prefix": .optional(prefix),
            "bearer_secrets_to_any_certificate": .bool(bearerSecrets == .toAnyCertificateThatVerifies),
            "vault": .string(vault.rawValue),
        ]
    }

    /// What `profile add` wrote. People edit such files, so every value is checked again.
    init(_ bytes: [UInt8], at path: String) throws(OperationalError) {
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes, dialect: .comments)
        } catch {
            throw OperationalError(.failed, message: "\(path): not JSON: \(error)")
        }
        func text(_ name: String) throws(OperationalError) -> String {
            if let text = document.root[name]?.string { return text }
            throw OperationalError(.failed, message: "\(path): \(name): expected a string")
        }
        url = try text("url")
        _ = try Origin.split(url)
        guard let keyID = KeyID(try text("key_id")) else {
            throw OperationalError(
                .failed, message: "\(path): key_id: expected 1 to \(KeyID.longest) visible ASCII characters")
        }
        guard let scheme = SchemeName(rawValue: try text("scheme")), SchemeName.signing.contains(scheme)
        else {
            throw OperationalError(
                .failed, message: "\(path): scheme: expected one of \(SchemeName.signing.map(\.rawValue))")
        }
        self.keyID = keyID
        self.scheme = scheme
        platform = try text("platform")
        version = try text("version")
        if let offset = document.root["timezone_offset"] {
            guard let seconds = document.integer(offset, in: -50_400...50_400) else {
                throw OperationalError(
                    .failed, message: "\(path): timezone_offset: expected seconds from -50400 to 50400")
            }
            timezoneOffset = seconds
        }
        if let text = document.root["form_md5_key"]?.string {
            formMD5Key = try Profile.formMD5Key(text, at: "\(path): form_md5_key")
        }
        for element in document.root["pins"]?.elements ?? [] {
            guard let pin = try? Trust.Pin(element.string ?? "") else {
                throw OperationalError(
                    .failed, message: "\(path): pins: expected sha256/ and 44 characters of Base64")
            }
            pins.append(pin)
        }
        certificates = document.root["ca"]?.string
        app = document.root["app"]?.string
        if let text = document.root["prefix"]?.string {
            prefix = try Profile.prefix(text, at: "\(path): prefix")
        }
        if case .bool(true)? = document.root["bearer_secrets_to_any_certificate"]?.content {
            bearerSecrets = .toAnyCertificateThatVerifies
        }
        if let text = document.root["vault"]?.string { vault = try Profile.vault(text, at: "\(path): vault") }
        if let text = document.root["authority_key"]?.string { authorityKey = try Profile.authorityKey(text) }
        if let text = document.root["next_authority_key"]?.string {
            nextAuthorityKey = try Profile.authorityKey(text)
        }
        if let text = document.root["algorithm"]?.string {
            guard let algorithm = KeyAlgorithm(rawValue: text) else {
                throw OperationalError(
                    .failed,
                    message: "\(path): algorithm: expected one of \(KeyAlgorithm.allCases.map(\.rawValue))")
            }
            self.algorithm = algorithm
        }
    }

    static func vault(_ text: String, at place: String) throws(OperationalError) -> ProfileVault.Kind {
        guard let kind = ProfileVault.Kind(rawValue: text) else {
            let names = ProfileVault.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw OperationalError(.usage, message: "\(place) `\(text)`: expected one of \(names)")
        }
        return kind
    }

    static func formMD5Key(_ text: String, at place: String) throws(OperationalError) -> FormMD5.KeyPosition {
        if let key = FormMD5.KeyPosition(rawValue: text) { return key }
        throw OperationalError(.usage, message: "\(place) `\(text)`: expected pair or appended")
    }

    /// A path without a slash at its end.
    package static func prefix(_ text: String, at place: String) throws(OperationalError) -> String {
        guard text.hasPrefix("/"), !text.hasSuffix("/"), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw OperationalError(
                .usage, message: "\(place) `\(text)`: expected a path such as /countersign/v1")
        }
        return text
    }

    /// As `release add` prints it.
    package static func authorityKey(_ text: String) throws(OperationalError) -> [UInt8] {
        guard let key = Base64.decode(text, as: .url), key.count == 32 else {
            throw OperationalError(
                .usage,
                message:
                    "the authority key: expected 43 characters of base64url, as `release add` prints them")
        }
        return key
    }
}

/// A profile's settings as the SDK has them.
extension Profile {
    func release(_ key: SigningKey) throws(CountersignError) -> ReleaseKey {
        let authority: AuthorityKeys
        do {
            authority = try authorityKeys()
        } catch {
            throw .misuse("authority_key: \(error)")
        }
        return ReleaseKey(
            Credentials(keyID: keyID, key: key), authorityKey: authority.current,
            nextAuthorityKey: authority.next, app: app)
    }

    /// The keys that the server's own answers verify under.
    func authorityKeys() throws(SealError) -> AuthorityKeys {
        AuthorityKeys(
            current: try authorityKey.map { (bytes) throws(SealError) in
                SigningKey(try PublicKey(ed25519: bytes))
            },
            next: try nextAuthorityKey.map { (bytes) throws(SealError) in
                SigningKey(try PublicKey(ed25519: bytes))
            })
    }

    func options(for origin: Origin) throws(OperationalError) -> CountersignOptions {
        var transport = TransportOptions()
        transport.authorities = try authorities()
        var options = CountersignOptions()
        options.transport = .standard(transport)
        options.userAgent = "countersign/\(Product.version)"
        // A profile may be a URL, a key id and a secret alone; refusals are shown to a person either way.
        options.missingAuthorityKey = .leavesRefusalsUnverified
        if let prefix { options.routes = prefix }
        // A profile may name a server without TLS, as scripts on one machine do.
        if origin.security == .plaintext { options.encryption = .noneSoThatAnybodyReadsAndChangesEverything }
        if bearerSecrets == .toAnyCertificateThatVerifies {
            options.bearerSecrets = .toAnyCertificateThatVerifies
        }
        return options
    }
}

extension Profile {
    /// The trust of a profile: a server with a chain to an authority which, if pins are named, contains one
    /// of them; or a self-signed certificate with a pinned key. With `--ca` alone, a server with a chain to
    /// one of those certificates. The host's name is checked in every case.
    package func trust(for origin: Origin) throws(OperationalError) -> Trust {
        do {
            let policy: Trust.Policy
            if !pins.isEmpty {
                // One pin may stand alone here: after a loss of the key the user makes another profile, which
                // an app cannot.
                policy = .pins(try PinSet(withoutBackup: pins))
            } else if let certificates {
                policy = try .certificates(try Profile.authorities(inFile: certificates))
            } else {
                return .system
            }
            return Trust(
                [Trust.Rule(try Trust.HostPattern(origin.host.description), policy)], others: .refused)
        } catch {
            throw OperationalError(error, in: "\(origin)")
        }
    }

    /// Where chains may end: with those of `--ca`, else with those of the machine.
    package func authorities() throws(OperationalError) -> TransportOptions.Authorities {
        guard let certificates else { return .machine }
        return .instead(try Profile.authorities(inFile: certificates))
    }

    static func authorities(inFile path: String) throws(OperationalError) -> [Trust.Certificate] {
        let found: [Trust.Certificate]
        do {
            found = try Trust.Certificate.all(inPEM: try Console.readFile(path, limit: 1 << 20))
        } catch {
            throw OperationalError(.failed, message: OperationalError(error, in: path).message)
        }
        guard !found.isEmpty else {
            throw OperationalError(.failed, message: "\(path): expected certificates in PEM")
        }
        return found
    }
}
