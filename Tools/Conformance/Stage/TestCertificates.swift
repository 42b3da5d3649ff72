import CountersignLab
import CountersignSeal
import CountersignTestServer
import CountersignTrust
import CountersignWire
import Glibc

/// The certificates that the front shows. Each signs itself.
struct TestCertificates: Sendable {
    /// What clients call the front.
    static let host = "localhost"

    /// In use at first; its pin is given to the port.
    let current: IssuedCertificate
    /// Its pin is given to the port as the backup.
    let backup: IssuedCertificate
    /// Of a key that the port was not given.
    let stranger: IssuedCertificate
    /// Named by pin manifests alone.
    let successor: IssuedCertificate
    /// Named by pin manifests alone, as the backup.
    let successorBackup: IssuedCertificate
    /// Of the current key, for another host.
    let otherHost: IssuedCertificate
    /// Of the current key, and past its last day.
    let expired: IssuedCertificate

    init() throws(LabError) {
        do {
            let now = Int64(time(nil))
            let host = TestCertificates.host
            current = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            backup = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            stranger = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            successor = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            successorBackup = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            var request = CertificateRequest("other.test", hosts: ["other.test"], at: now)
            request.key = .of(current)
            otherHost = try .selfSigned(request)
            request = CertificateRequest(host, hosts: [host], at: now - 60 * 86_400)
            request.key = .of(current)
            expired = try .selfSigned(request)
        } catch {
            throw LabError("certificates: \(error)")
        }
    }
}

/// The contents of a pin manifest and its signing key: correct, except for what a case changes.
struct TestManifest: Sendable {
    enum Signer: Sendable {
        /// Whose key the port was given.
        case known
        case stranger
    }

    /// The version that the pins stand for that a port is set up with.
    static let builtInVersion = 4

    var app = TestDeployment.App.ordinary.rawValue
    var version: Int
    /// Whole Unix seconds.
    var validity: ClosedRange<Int64>
    var signer = Signer.known

    /// In its time at `now`, for an hour on both sides.
    init(version: Int, at now: Int64) {
        self.version = version
        validity = now - 3_600...now + 3_600
    }

    /// What is signed, with a rule for ``TestCertificates/host``.
    func bytes(pins: [Trust.Pin], backups: [Trust.Pin]) -> [UInt8] {
        let host: JSONValue = [
            "pattern": .string(TestCertificates.host), "mode": "enforce",
            "pins": .array(pins.map { .string($0.description) }),
            "backups": .array(backups.map { .string($0.description) }),
        ]
        let manifest: JSONValue = [
            "app": .string(app), "version": .integer(Int64(version)),
            "not_before": .integer(validity.lowerBound), "not_after": .integer(validity.upperBound),
            "hosts": .array([host]),
        ]
        return Array(manifest.text.utf8)
    }
}

/// The offline key of the apps' pin manifests, and a key that no port was given.
struct ManifestSigner: Sendable {
    private let known: PrivateKey
    private let stranger: PrivateKey
    /// The known key's public half, 32 bytes.
    let publicKey: [UInt8]

    init() throws(LabError) {
        do {
            known = try PrivateKey(ed25519Seed: Secret(random: 32))
            stranger = try PrivateKey(ed25519Seed: Secret(random: 32))
        } catch {
            throw LabError("manifest key: \(error)")
        }
        // The key itself stands at the end of its SubjectPublicKeyInfo. Source: RFC 8410 §4.
        publicKey = Array(known.publicKey.der.suffix(32))
    }

    /// The signed text, whose pins are those of the certificates that only manifests name.
    func text(of manifest: TestManifest, naming certificates: TestCertificates) -> [UInt8]? {
        let bytes = manifest.bytes(
            pins: [certificates.successor.certificate.pin],
            backups: [certificates.successorBackup.certificate.pin])
        let key =
            switch manifest.signer {
            case .known: known
            case .stranger: stranger
            }
        return SignedManifest.text(of: bytes, signedBy: key)
    }
}
