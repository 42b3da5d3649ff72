import Countersign
import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire

/// A profile's settings as the SDK has them.
extension Profile {
    func release(_ key: SigningKey) throws(CountersignError) -> ReleaseKey {
        var authority: SigningKey?
        if let bytes = authorityKey {
            do {
                authority = SigningKey(try PublicKey(ed25519: bytes))
            } catch {
                throw .misuse("authority_key: expected \(error.expected)")
            }
        }
        return ReleaseKey(Credentials(keyID: keyID, key: key), authorityKey: authority, app: app)
    }

    func options(for origin: Origin) throws(Fault) -> CountersignOptions {
        var carriage = TransportOptions()
        carriage.authorities = try authorities()
        var options = CountersignOptions()
        options.carriage = .standard(carriage)
        options.userAgent = "countersign/\(Product.version)"
        // A profile may be a URL, a key id and a secret alone; refusals are shown to a person either way.
        options.missingAuthorityKey = .leavesRefusalsUnverified
        if let prefix { options.routes = prefix }
        // A profile may name a server without TLS, as scripts on one machine do.
        if origin.security == .plaintext { options.encryption = .noneSoThatAnybodyReadsAndChangesEverything }
        if bearerSecrets == .toAnyCertificateThatVerifies { options.bearerSecrets = .toAnyCertificateThatVerifies }
        return options
    }
}
