import CountersignLab
import CountersignSchemes
import CountersignTransport
import CountersignTrust
import CountersignWire

extension Command {
    static let selfTest = Command(
        words: ["selftest"], summary: "attack a deployment of your own: vectors, replays, changes, wrong times",
        positionals: [Positional(name: "URL")],
        options: [
            .value("key-id", "ID", "a release key's id, best of a release made for this and retired afterwards"),
            .secret, .secretStdin, .secretFile, .algorithm,
            .value("scheme", "NAME", "how the release signs (default: message-signatures)"),
            .value(
                "path", "PATH",
                "where on the backend signed requests may go, GET and POST (default: for message-signatures a route of the authority's own, else /)"
            ),
            .value("authority-key", "K", "the server's `authority_key`: its answers are verified with it"),
            .value("prefix", "PATH", "where the server's own routes begin (default: /countersign/v1)"),
            .value(
                "window", "SECONDS",
                "how far a signature's time may be off, where a policy says (default: the scheme's)"),
            .list("pin", "sha256/…", "a public key to expect there"),
            .value("ca", "F", "a PEM file of the authorities to trust there, in place of the system's"),
            .flag(
                "over-plain-http-to-another-machine",
                "go on where the URL is http and not this machine: whoever reads along may use what is signed"),
            .value("platform", "NAME", "form-md5: the app's platform"),
            .value("app-version", "V", "form-md5: the app's version"),
            .value("timezone", "+08:00", "form-md5: the zone of the clock it sends (default: UTC)"),
            .formMD5Key,
            .json,
        ] + Signing.scopeOptions,
        notes: """
            Does what an attacker in between would do, with a key that you give it: sends requests twice, changed, late, under other
            schemes and in broken HTTP, and says of each what was sent, what was expected and what came:
            ✓ held, ✗ broken, ! a weakness of the scheme itself, which no deployment can mend, – does not apply.

            Some ninety requests, at most twenty a second: about five seconds. Those that are signed and right reach the backend at --path; each bears
            `selftest=` and eight random bytes. It makes no account, session or setting. Exit 1 where anything is broken.

            \(KeyText.explanation)
            """
    ) { (run) throws(Fault) in
        let test = SelfTest(of: try subject(run))
        run.console.note(announcement(test, run))
        let style = run.style
        let isJSON = run.arguments.has("json")
        // What cannot be written ends the run at its end: standard output has gone, the deployment has not.
        var unwritten: Fault?
        let report = try test.run { check, finding in
            guard !isJSON, unwritten == nil else { return }
            do throws(Fault) {
                try run.console.print(painted: SelfTestText(style: style).line(check, finding))
            } catch {
                unwritten = error
            }
        }
        if let unwritten { throw unwritten }
        if isJSON {
            try run.console.print(report.json(try run.required("URL")).prettyText)
        } else {
            try run.console.print(painted: SelfTestText(style: style).sum(report))
        }
        return report.count(of: .broken) == 0 ? .success : .failed
    }

    private static func announcement(_ test: SelfTest, _ run: Invocation) -> String {
        let url = run.arguments.positional("URL") ?? ""
        return "selftest: \(test.checks.count) checks of \(url), some ninety requests, at most twenty a second"
    }

    private static func subject(_ run: Invocation) throws(Fault) -> Subject {
        let (origin, target) = try Origin.split(run.required("URL"))
        guard target == [UInt8(ascii: "/")] else {
            throw Fault(.usage, "URL: expected no path; --path says where requests may go")
        }
        if origin.security == .plaintext, !origin.isThisMachine,
            !run.arguments.has("over-plain-http-to-another-machine")
        {
            throw Fault(
                .usage,
                "\(origin): without TLS, whoever reads along may use what is signed; expected https, or --over-plain-http-to-another-machine"
            )
        }
        let scheme = try run.schemeName()
        let keyID = try run.keyID(run.requiredOption("key-id"), at: "--key-id")
        guard let given = try run.secretText() else {
            throw Fault(.usage, "the secret is missing: expected --secret-stdin, --secret-file or COUNTERSIGN_SECRET")
        }
        let key = try KeyText.key(given.text, bare: .asPrinted(scheme), algorithm: run.algorithm(), at: given.place)
        guard key.publicKey == nil || scheme == .messageSignatures, key.signs else {
            throw Fault(.usage, "\(given.place): expected a key that \(scheme.rawValue) signs with")
        }
        // A profile that is not kept: its trust is what `profile add` would make of the same options.
        var profile = Profile(url: origin.description, keyID: keyID, scheme: scheme)
        for text in run.arguments.values("pin") { profile.pins.append(try pin(text)) }
        profile.certificates = run.arguments.value("ca")
        var credentials = Credentials(
            keyID: keyID, key: key, platform: run.arguments.value("platform") ?? "",
            version: run.arguments.value("app-version") ?? "", timezoneOffset: try run.timezoneOffset())
        credentials.formMD5Key = try run.formMD5Key() ?? .pair
        Signing.setScope(of: &credentials, run)
        if scheme == .formMD5, credentials.platform.isEmpty || credentials.version.isEmpty {
            throw Fault(
                .usage, "form-md5 names platform and version in each request: expected --platform and --app-version")
        }
        var subject = Subject(
            origin: origin, trust: try profile.trust(for: origin), authorities: try profile.authorities(),
            scheme: scheme,
            credentials: credentials, secretText: given.text, place: try place(run, scheme))
        if let text = run.arguments.value("authority-key") { subject.authorityKey = try Profile.authorityKey(text) }
        if let text = run.arguments.value("prefix") { subject.prefix = try Profile.prefix(text, at: "--prefix") }
        if let text = run.arguments.value("window") {
            guard let seconds = Int(text), (8...86_400).contains(seconds) else {
                throw Fault(.usage, "--window `\(text)`: expected 8 to 86400 seconds")
            }
            subject.window = seconds
        }
        return subject
    }

    private static func place(_ run: Invocation, _ scheme: SchemeName) throws(Fault) -> Subject.Place {
        if let path = run.arguments.value("path") { return .backend(try Origin.checkedTarget(path)) }
        return scheme == .messageSignatures ? .ownRoute : .backend([UInt8(ascii: "/")])
    }

    private static func pin(_ text: String) throws(Fault) -> Trust.Pin {
        do {
            return try Trust.Pin(text)
        } catch {
            throw Fault(.usage, "--pin: \(error)")
        }
    }
}

extension Origin {
    /// Whether what is sent there cannot be read on a wire. Source: RFC 6761 §6.3; RFC 4291 §2.5.3.
    fileprivate var isThisMachine: Bool {
        let name = host.description
        return name == "localhost" || name == "::1" || (host.isAddress && name.hasPrefix("127."))
    }
}
