import CountersignSeal
import CountersignWire

/// A set of pins that replaces the built-in set while the app runs.
///
/// A JSON object:
/// `{"app":NAME,"version":N,"not_before":T,"not_after":T,"hosts":[HOST]}` with each HOST
/// `{"pattern":"**.example.com","mode":"enforce","pins":["sha256/…"],"backups":["sha256/…"]}`,
/// times in whole Unix seconds. A manifest with any other member is refused: the client could not enforce a
/// requirement that it does not know.
public struct PinManifest: Sendable {
    /// The app that the manifest is for: a team may sign for several apps with one key.
    public let app: String
    /// Increases with each manifest of the app, from 1 on, and is never used twice.
    public let version: Int
    /// The period in which the manifest can take effect; whole Unix seconds, the last one included.
    public let validity: ClosedRange<Int64>
    /// The rules; each has pins.
    public let rules: [Trust.Rule]

    /// Parses the JSON above.
    public init(json: [UInt8]) throws(ManifestError) {
        let reader = try ManifestReader(json, depth: 8)
        let root = try reader.object(
            reader.root, describedAs: "the manifest",
            names: ["app", "version", "not_before", "not_after", "hosts"])
        app = try reader.text(in: root, named: "app")
        version = try reader.integer(in: root, named: "version", range: 1...Int.max)
        let times = 0...253_402_300_799  // the year 9999
        let first = try reader.integer(in: root, named: "not_before", range: times)
        let last = try reader.integer(in: root, named: "not_after", range: times)
        guard first <= last else { throw .malformed("not_after: expected a time after not_before") }
        validity = Int64(first)...Int64(last)
        var rules: [Trust.Rule] = []
        for host in try reader.list(in: root, named: "hosts") { rules.append(try reader.rule(host)) }
        guard !rules.isEmpty else { throw .malformed("hosts: expected at least one") }
        self.rules = rules
    }
}

/// Why a manifest has no effect. The trust in effect remains.
public enum ManifestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The text is not a manifest: what was found, and what was expected.
    case malformed(String)
    /// None of the keys has signed the manifest.
    case badSignature
    /// The manifest is for this other app.
    case otherApp(String)
    /// The manifest is not newer than the version in effect.
    case notNewer(version: Int, inForce: Int)
    /// The manifest is not valid yet; whole Unix seconds.
    case notYetValid(from: Int64)
    /// The manifest has expired; whole Unix seconds.
    case expired(at: Int64)
    /// The manifest does not pin this host, the app's own server, but the built-in set does.
    case hostNotPinned(String)
    /// The store cannot be read or written.
    case store(String)

    /// One line for a log.
    public var description: String {
        switch self {
        case .malformed(let detail): "pin manifest: \(detail)"
        case .badSignature: "pin manifest: none of the known keys has signed it"
        case .otherApp(let app): "pin manifest: it is for the app `\(app)`"
        case .notNewer(let version, let inForce):
            "pin manifest: version \(version); expected one above \(inForce), which is in force"
        case .notYetValid(let time): "pin manifest: not valid before \(time)"
        case .expired(let time): "pin manifest: not valid after \(time)"
        case .hostNotPinned(let host):
            "pin manifest: it does not pin \(host), the app's own server, which the built-in set does"
        case .store(let detail): "pin manifest: \(detail)"
        }
    }
}

/// Reads a manifest's members; errors name the invalid member.
struct ManifestReader {
    private let document: JSONDocument

    /// The outermost value.
    var root: JSON { document.root }

    /// At most ``SignedManifest/longest`` bytes, nested no deeper than `depth`.
    init(_ json: [UInt8], depth: Int) throws(ManifestError) {
        var bounds = JSONReader.Bounds()
        bounds.bytes = SignedManifest.longest
        bounds.depth = depth
        do {
            document = try JSONReader.read(json, bounds: bounds)
        } catch {
            throw .malformed("\(error)")
        }
    }

    /// An object with exactly these members, each once.
    func object(_ value: JSON, describedAs what: String, names: Set<String>) throws(ManifestError) -> JSON {
        guard let members = value.members else { throw .malformed("\(what): expected an object") }
        for member in members where !names.contains(member.name) {
            throw .malformed("\(what): `\(member.name.prefix(64))` is not known")
        }
        return value
    }

    func text(in object: JSON, named name: String) throws(ManifestError) -> String {
        guard let text = object[name]?.string, !text.isEmpty else {
            throw .malformed("\(name): expected a text")
        }
        return text
    }

    func integer(in object: JSON, named name: String, range: ClosedRange<Int>) throws(ManifestError) -> Int {
        guard let value = object[name], let number = document.integer(value, in: range) else {
            throw .malformed("\(name): expected a whole number from \(range.lowerBound) on")
        }
        return number
    }

    func list(in object: JSON, named name: String) throws(ManifestError) -> [JSON] {
        guard let elements = object[name]?.elements else { throw .malformed("\(name): expected a list") }
        return elements
    }

    func rule(_ value: JSON) throws(ManifestError) -> Trust.Rule {
        let host = try object(value, describedAs: "a host", names: ["pattern", "mode", "pins", "backups"])
        let pattern = try text(in: host, named: "pattern")
        do {
            return try Trust.Rule.host(
                pattern, pins: try texts(in: host, named: "pins"),
                backups: try texts(in: host, named: "backups"),
                mode: try mode(host))
        } catch {
            throw .malformed("\(pattern): \(error)")
        }
    }

    /// The default is `enforce`.
    private func mode(_ host: JSON) throws(TrustError) -> Trust.Rule.Mode {
        guard let value = host["mode"] else { return .enforce }
        switch value.string {
        case "enforce": return .enforce
        case "report-only": return .reportOnly
        default: throw TrustError("mode: expected `enforce` or `report-only`")
        }
    }

    private func texts(in host: JSON, named name: String) throws(TrustError) -> [String] {
        guard let elements = host[name]?.elements else {
            throw TrustError("\(name): expected a list of pins")
        }
        var texts: [String] = []
        for element in elements {
            guard let text = element.string else { throw TrustError("\(name): expected a list of pins") }
            texts.append(text)
        }
        return texts
    }
}

/// A manifest with its signature: `{"manifest":B,"signature":B}`, each in base64url without padding. The
/// signature is Ed25519 (RFC 8032 §5.1) over the line `countersign pin manifest 1`, a line feed, and the
/// manifest's bytes unchanged.
public struct SignedManifest: Sendable {
    /// The most bytes that are read; enough for some hundred hosts.
    public static let longest = 65_536

    /// A prefix that no other signed text has.
    private static let context = Array("countersign pin manifest 1\n".utf8)

    private let manifest: [UInt8]
    private let signature: [UInt8]

    /// Parses the text.
    public init(json: [UInt8]) throws(ManifestError) {
        let reader = try ManifestReader(json, depth: 2)
        let root = try reader.object(
            reader.root, describedAs: "the signed manifest", names: ["manifest", "signature"])
        guard let manifest = Base64.decode(try reader.text(in: root, named: "manifest"), as: .url),
            let signature = Base64.decode(try reader.text(in: root, named: "signature"), as: .url)
        else { throw .malformed("manifest and signature: expected base64url") }
        self.manifest = manifest
        self.signature = signature
    }

    /// Throws for a key that is not an Ed25519 public key.
    static func check(_ keys: [[UInt8]]) throws(ManifestError) {
        for bytes in keys where (try? PublicKey(ed25519: bytes)) == nil {
            throw .malformed("the manifest's key: expected an Ed25519 public key of 32 bytes")
        }
    }

    /// The manifest, if one of `keys` has signed it; each is an Ed25519 public key of 32 bytes. The manifest
    /// is parsed only after its signature has been verified.
    public func verified(by keys: [[UInt8]]) throws(ManifestError) -> PinManifest {
        let message = SignedManifest.context + manifest
        for bytes in keys {
            guard let key = try? PublicKey(ed25519: bytes) else {
                throw .malformed("the manifest's key: expected an Ed25519 public key of 32 bytes")
            }
            guard key.verify(signature.span, of: message.span) == .equal else { continue }
            return try PinManifest(json: manifest)
        }
        throw .badSignature
    }

    /// What it says, without a look at the signature: to be shown, not to be followed.
    package var unverified: PinManifest {
        get throws(ManifestError) { try PinManifest(json: manifest) }
    }

    /// The text of a manifest with its signature, made with the offline key. Nil if the key is not an Ed25519
    /// key.
    package static func text(of manifest: [UInt8], signedBy key: PrivateKey) -> [UInt8]? {
        let message = context + manifest
        guard key.algorithm == .ed25519, let signature = key.sign(message.span) else { return nil }
        let json: JSONValue = [
            "manifest": .string(Base64.encode(manifest.span, as: .url)),
            "signature": .string(Base64.encode(signature.span, as: .url)),
        ]
        return Array(json.text.utf8)
    }
}
