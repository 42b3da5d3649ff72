import CountersignAuthority
import CountersignSeal
import CountersignTrust
import CountersignWire
import Glibc

/// The keys that pin manifests are signed and verified with, as people hand them over.
enum PinKey {
    static let publicOption = Option.value(
        "public-key", placeholder: "K",
        meaning:
            "the public key that `pins keygen` printed; the manifest has to be signed with its other half")

    /// The 32 bytes, in base64url.
    static func text(of key: PublicKey) -> String {
        // What stands before them in DER says that they are Ed25519's. Source: RFC 8410 §4.
        let bytes = Array(key.der.suffix(32))
        return Base64.encode(bytes.span, as: .url)
    }

    static func privateKey(inFile path: String) throws(OperationalError) -> PrivateKey {
        guard let text = try KeyFile.read(path) else {
            throw OperationalError(.failed, message: "\(path): there is no such file")
        }
        do {
            return try text.withExposedBytes { (pem) throws(SealError) in
                try PrivateKey(pem: pem, algorithm: .ed25519)
            }
        } catch {
            throw OperationalError(.failed, message: "\(path): \(error)")
        }
    }

    /// What `--public-key` says.
    static func publicKey(_ run: Invocation) throws(OperationalError) -> [UInt8] {
        let text = try run.requiredOption("public-key")
        guard let key = Base64.decode(text, as: .url), key.count == 32 else {
            throw OperationalError(
                .usage,
                message: "--public-key: expected 43 characters of base64url, as `pins keygen` prints them")
        }
        return key
    }
}

/// A signed manifest whose signature holds.
struct VerifiedManifest {
    let text: String
    let manifest: PinManifest

    /// Checked as an app checks it.
    init(_ bytes: [UInt8], at place: String, signedWith key: [UInt8]) throws(OperationalError) {
        do {
            manifest = try SignedManifest(json: bytes).verified(by: [key])
        } catch {
            throw OperationalError(.failed, message: "\(place): \(error)")
        }
        // JSON that was read is UTF-8.
        text = String(decoding: bytes, as: UTF8.self)
    }

    init(inFile path: String, signedWith key: [UInt8]) throws(OperationalError) {
        try self.init(try Console.readFile(path, limit: SignedManifest.longest), at: path, signedWith: key)
    }

    /// Where the manifest comes from, for people.
    static func place(givenTo run: Invocation) throws(OperationalError) -> String {
        let path = try run.required("FILE")
        return path == "-" ? "standard input" : path
    }

    /// From the file that the command is given, which is standard input if it is `-`.
    init(givenTo run: Invocation, signedWith key: [UInt8]) throws(OperationalError) {
        let path = try run.required("FILE")
        guard path == "-" else {
            try self.init(inFile: path, signedWith: key)
            return
        }
        let bytes = try run.console.read(limit: SignedManifest.longest)
        try self.init(bytes, at: "standard input", signedWith: key)
    }
}

extension Command {
    static let pinsKeygen = Command(
        words: ["pins", "keygen"], summary: "make the offline key that signs pin manifests",
        positionals: [Positional(name: "FILE")], options: [.json],
        notes: """
            Writes the private key to FILE (PKCS #8, mode 0600), which must not exist. Keep it off every
            server: an attacker with this key and an authority's certificate can impersonate yours. The
            command prints the public key, which is built into the app beside that of a second pair, with
            which the first can be replaced.
            """
    ) { (run) throws(OperationalError) in
        let path = try run.required("FILE")
        guard access(path, F_OK) != 0 else {
            throw OperationalError(.failed, message: "\(path): is there already; expected a new file")
        }
        try KeyFile.make(at: path, holding: PrivateKey.pem(ed25519Seed: Secret(random: 32)))
        // As the file has it: of two that make it at once, one is there.
        let key = PinKey.text(of: try PinKey.privateKey(inFile: path).publicKey)
        try run.print(["file": .string(path), "public_key": .string(key)]) { "public_key  \(key)" }
        return .success
    }
}

extension Command {
    static let pinsSign = Command(
        words: ["pins", "sign"], summary: "sign a pin manifest",
        positionals: [Positional(name: "FILE")],
        options: [.value("key", placeholder: "F", meaning: "the private key that `pins keygen` made")],
        notes: """
            FILE is the manifest, as JSON (docs/protocol.md, "Pin manifests"):
            {"app":"shop","version":2,"not_before":1790000000,"not_after":1797776000,
             "hosts":[{"pattern":"**.example.com","pins":["sha256/…"],"backups":["sha256/…"]}]}
            It is signed to the byte, if it is one that an app would take up. The signed one goes to \
            standard output.
            """
    ) { (run) throws(OperationalError) in
        let path = try run.required("FILE")
        let key = try PinKey.privateKey(inFile: run.requiredOption("key"))
        let bytes = try Console.readFile(path, limit: SignedManifest.longest)
        do throws(ManifestError) {
            _ = try PinManifest(json: bytes)
        } catch {
            throw OperationalError(.failed, message: "\(path): \(error)")
        }
        guard let signed = SignedManifest.text(of: bytes, signedBy: key),
            signed.count < SignedManifest.longest
        else {
            throw OperationalError(
                .failed,
                message:
                    "\(path): expected a manifest that has \(SignedManifest.longest) bytes when it is signed")
        }
        try run.console.write(signed + Array("\n".utf8))
        return .success
    }
}

extension Command {
    static let pinsShow = Command(
        words: ["pins", "show"], summary: "check a signed pin manifest, and show what it says",
        positionals: [Positional(name: "FILE")], options: [PinKey.publicOption, .json]
    ) { (run) throws(OperationalError) in
        let key = try PinKey.publicKey(run)
        let manifest = try VerifiedManifest(givenTo: run, signedWith: key).manifest
        try run.print(manifest.shown) {
            let span =
                "\(TimeText.text(manifest.validity.lowerBound)) to "
                + "\(TimeText.text(manifest.validity.upperBound))"
            let head = "app:      \(manifest.app)\nversion:  \(manifest.version)\nvalid:    \(span)"
            let rules = manifest.rules.map { rule in
                let only = rule.mode == .reportOnly ? " (reports only)" : ""
                return "\(rule.pattern)\(only)\n" + rule.policy.pins.map { "  \($0)" }.joined(separator: "\n")
            }
            return ([head] + rules).joined(separator: "\n")
        }
        return .success
    }
}

extension PinManifest {
    fileprivate var shown: JSONValue {
        let hosts = rules.map { rule -> JSONValue in
            [
                "pattern": .string(rule.pattern.description),
                "mode": rule.mode == .reportOnly ? "report-only" : "enforce",
                "pins": .strings(rule.policy.pins.map(\.description)),
            ]
        }
        return [
            "app": .string(app), "version": .integer(Int64(version)),
            "not_before": .integer(validity.lowerBound),
            "not_after": .integer(validity.upperBound), "hosts": .array(hosts),
        ]
    }
}

extension Command {
    static let pinsList = Command(
        words: ["pins", "list"], summary: "show the pin manifests that clients are handed",
        options: [.data, .json],
        notes: """
            Their signatures are not verified: the deployment has no key to do so. `pins show FILE`
            verifies one.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let manifests = try deployment.pinManifests()
        var shown: [PinManifest] = []
        for app in try deployment.store.apps().map(\.name) {
            guard let text = manifests.text(of: app) else { continue }
            do {
                shown.append(try SignedManifest(json: Array(text.utf8)).unverified)
            } catch {
                throw OperationalError(.failed, message: "\(app): what is served: \(error)")
            }
        }
        try run.print(["manifests": .array(shown.map(\.shown))]) {
            if shown.isEmpty { return "no manifests; `countersign pins publish` hands one to clients" }
            return Table.text(
                head: ["APP", "VERSION", "FROM", "TO", "HOSTS"],
                rows: shown.map { manifest in
                    [
                        manifest.app, String(manifest.version), TimeText.text(manifest.validity.lowerBound),
                        TimeText.text(manifest.validity.upperBound)
                            + (manifest.validity.upperBound <= run.now ? " (expired)" : ""),
                        manifest.rules.map(\.pattern.description).joined(separator: ", "),
                    ]
                })
        }
        return .success
    }
}

extension Command {
    static let pinsPublish = Command(
        words: ["pins", "publish"], summary: "hand a signed pin manifest to clients that ask",
        positionals: [Positional(name: "FILE")], options: [PinKey.publicOption, .data, .json],
        notes: """
            FILE is what `pins sign` wrote; `-` is standard input. The server returns it unchanged at
            `pins/APP` below the authority's prefix, from the next request on. Its app must exist, its
            validity must not be over, and its version must be above that of the manifest served now, if
            that was signed with the same key. Over the API the key cannot be replaced.
            """
    ) { (run) throws(OperationalError) in
        let key = try PinKey.publicKey(run)
        let place = try VerifiedManifest.place(givenTo: run)
        let new = try VerifiedManifest(givenTo: run, signedWith: key)
        guard let app = AppName(new.manifest.app) else {
            throw OperationalError(
                .failed,
                message: "\(place): it is for the app `\(new.manifest.app)`, which no app here can be called")
        }
        guard new.manifest.validity.upperBound >= run.now else {
            throw OperationalError(
                .failed, message: "\(place): \(ManifestError.expired(at: new.manifest.validity.upperBound))")
        }
        guard new.manifest.version <= 1 << 53 else {
            throw OperationalError(
                .failed, message: "\(place): version \(new.manifest.version); expected at most \(1 << 53)")
        }
        let deployment = try run.deployment()
        let earlier = try deployment.pinManifests().text(of: app)
        if let earlier {
            try require(new.manifest, above: earlier, key: key, place: place, isRemote: run.host != nil)
        }
        try deployment.publish(pinManifest: new.text, version: new.manifest.version, of: app, after: earlier)
        let version = new.manifest.version
        try run.print(["app": .string(app.description), "version": .integer(Int64(version))]) {
            "version \(version) is what clients of \(app) get"
        }
        return .success
    }

    /// One that was signed with an earlier key is not asked for its version: to replace the key is what two
    /// are for. That is for a person on the server's machine: a caller of the API could replace the key, and
    /// then put back an old manifest of the former one.
    private static func require(
        _ new: PinManifest, above earlier: String, key: [UInt8], place: String, isRemote: Bool
    ) throws(OperationalError) {
        let inForce: Int
        do {
            inForce = try SignedManifest(json: Array(earlier.utf8)).verified(by: [key]).version
        } catch {
            guard error == .badSignature else {
                throw OperationalError(.failed, message: "what is served: \(error)")
            }
            guard !isRemote else {
                throw OperationalError(
                    .failed,
                    message: "\(place): what is served was signed with another key; expected "
                        + "`countersign pins publish` on the server's machine to replace the key")
            }
            return
        }
        guard new.version > inForce else {
            throw OperationalError(
                .failed,
                message: "\(place): \(ManifestError.notNewer(version: new.version, inForce: inForce))")
        }
    }
}
