import CountersignCLI
import CountersignLab
import CountersignSchemes
import CountersignTransport
import CountersignTrust
import CountersignWire

extension Command {
    static let selfTest = Command(
        .selfTest,
        positionals: [Positional(name: "URL")],
        options: [
            .value(
                "key-id", placeholder: "ID",
                meaning: "a release key's id, best of a release made for this and retired afterwards"),
            .secret, .secretStdin, .secretFile, .algorithm,
            .scheme(meaning: "how the release signs (default: message-signatures)"),
            .value(
                "path", placeholder: "PATH",
                meaning:
                    "where on the backend signed requests may go, GET and POST (default: for "
                    + "message-signatures a route of the authority's own, else /)"
            ),
            .value(
                "authority-key", placeholder: "K",
                meaning: "the server's `authority_key`: its answers are verified with it"),
            .nextAuthorityKey,
            .value(
                "prefix", placeholder: "PATH",
                meaning: "where the server's own routes begin (default: /countersign/v1)"),
            .value(
                "window", placeholder: "SECONDS",
                meaning: "how far a signature's time may be off, where a policy says "
                    + "(default: the scheme's)"),
            .list("pin", placeholder: "sha256/…", meaning: "a public key to expect there"),
            .value(
                "ca", placeholder: "F",
                meaning: "a PEM file of the authorities to trust there, in place of the system's"),
            .flag(
                "over-plain-http-to-another-machine",
                meaning:
                    "continue if the URL is http and not this machine: an eavesdropper can use the "
                    + "signed requests"
            ),
            .value("platform", placeholder: "NAME", meaning: "form-md5: the app's platform"),
            .value("app-version", placeholder: "V", meaning: "form-md5: the app's version"),
            .value(
                "timezone", placeholder: "+08:00",
                meaning: "form-md5: the zone of the clock it sends (default: UTC)"),
            .formMD5Key,
            .json,
        ] + RequestSigner.scopeOptions,
        notes: """
            Does what an attacker in between would do, with a key that you give it: sends requests twice, \
            changed, late, under other
            schemes and in broken HTTP, and says of each what was sent, what was expected and what came:
            ✓ held, ✗ broken, ! a weakness of the scheme itself, which no deployment can mend, – does not \
            apply.

            Some ninety requests, at most twenty a second: about five seconds. Those that are signed and \
            right reach the backend at --path; each bears
            `selftest=` and eight random bytes. It makes no account, session or setting. Exit 1 where \
            anything is broken.

            \(KeyText.explanation)
            """
    ) { (run) throws(OperationalError) in
        let test = SelfTest(of: try subject(run))
        run.console.note(announcement(of: test, run: run))
        let style = run.style
        let isJSON = run.arguments.has("json")
        // What cannot be written ends the run at its end: standard output has gone, the deployment has not.
        var unwritten: OperationalError?
        let report = try test.run { check, finding in
            guard !isJSON, unwritten == nil else { return }
            do throws(OperationalError) {
                try run.console.print(painted: SelfTestText(style: style).line(check, finding: finding))
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

    private static func announcement(of test: SelfTest, run: Invocation) -> String {
        let url = run.arguments.positional("URL") ?? ""
        return
            "selftest: \(test.checks.count) checks of \(url), some ninety requests, at most twenty a second"
    }

    private static func subject(_ run: Invocation) throws(OperationalError) -> SelfTestSubject {
        let (origin, target) = try Origin.split(run.required("URL"))
        guard target == [UInt8(ascii: "/")] else {
            throw OperationalError(
                .usage, message: "URL: expected no path; --path says where requests may go")
        }
        if origin.security == .plaintext, !origin.isThisMachine,
            !run.arguments.has("over-plain-http-to-another-machine")
        {
            throw OperationalError(
                .usage,
                message:
                    "\(origin): without TLS, an eavesdropper can use the signed requests; expected https, or "
                    + "--over-plain-http-to-another-machine"
            )
        }
        let scheme = try run.schemeName()
        let keyID = try run.keyID(run.requiredOption("key-id"), at: "--key-id")
        guard let given = try run.secretText() else {
            throw OperationalError(
                .usage,
                message: "the secret is missing: expected --secret-stdin, --secret-file or COUNTERSIGN_SECRET"
            )
        }
        let key = try KeyText.key(
            given.text, bare: .asPrinted(scheme), algorithm: run.algorithm(), at: given.place)
        guard key.publicKey == nil || scheme == .messageSignatures, key.signs else {
            throw OperationalError(
                .usage, message: "\(given.place): expected a key that \(scheme.rawValue) signs with")
        }
        // A profile that is not kept: its trust is what `profile add` would make of the same options.
        var profile = Profile(url: origin.description, keyID: keyID, scheme: scheme)
        for text in run.arguments.values("pin") { profile.pins.append(try pin(text)) }
        profile.certificates = run.arguments.value("ca")
        var credentials = Credentials(
            keyID: keyID, key: key, platform: run.arguments.value("platform") ?? "",
            version: run.arguments.value("app-version") ?? "", timezoneOffset: try run.timezoneOffset())
        credentials.formMD5Key = try run.formMD5Key() ?? .pair
        RequestSigner.setScope(of: &credentials, from: run)
        if scheme == .formMD5, credentials.platform.isEmpty || credentials.version.isEmpty {
            throw OperationalError(
                .usage,
                message:
                    "form-md5 names platform and version in each request: expected --platform and "
                    + "--app-version"
            )
        }
        var subject = SelfTestSubject(
            origin: origin, trust: try profile.trust(for: origin), authorities: try profile.authorities(),
            scheme: scheme,
            credentials: credentials, secretText: given.text, place: try place(run, scheme: scheme))
        if let text = run.arguments.value("authority-key") {
            subject.authorityKey = try Profile.authorityKey(text)
        }
        subject.nextAuthorityKey = try run.nextAuthorityKey()
        if let text = run.arguments.value("prefix") {
            subject.prefix = try Profile.prefix(text, at: "--prefix")
        }
        if let text = run.arguments.value("window") {
            guard let seconds = Int(text), (8...86_400).contains(seconds) else {
                throw OperationalError(.usage, message: "--window `\(text)`: expected 8 to 86400 seconds")
            }
            subject.window = seconds
        }
        return subject
    }

    private static func place(_ run: Invocation, scheme: SchemeName) throws(OperationalError)
        -> SelfTestSubject.Endpoint
    {
        if let path = run.arguments.value("path") { return .backend(try Origin.checkedTarget(path)) }
        return scheme == .messageSignatures ? .ownRoute : .backend([UInt8(ascii: "/")])
    }

    private static func pin(_ text: String) throws(OperationalError) -> Trust.Pin {
        do {
            return try Trust.Pin(text)
        } catch {
            throw OperationalError(.usage, message: "--pin: \(error)")
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

/// A self-test for people, a line for each check. What the deployment said is shown as ``VisibleText``.
struct SelfTestText {
    var style: ExplanationText.Style

    func line(_ check: SelfTestCheck, finding: SelfTestResult) -> String {
        let name = check.name.padded(to: 22)
        switch finding.verdict {
        case .notApplicable: return paint("– \(name)", in: .aside) + VisibleText.of(" \(finding.observed)")
        case .held, .broken, .knownWeakness:
            let text = " \(check.sent): expected \(finding.expected); came \(finding.observed)"
            return paint("\(mark(finding.verdict)) \(name)", in: colour(finding.verdict))
                + VisibleText.of(text)
        }
    }

    func sum(_ report: SelfTest.Report) -> String {
        let broken = report.count(of: .broken)
        let head = broken == 0 ? paint("held", in: .good) : paint("\(broken) broken", in: .bad)
        return
            "\(head): \(report.count(of: .held)) checks held; of the others "
            + "\(report.count(of: .knownWeakness)) are weaknesses of the "
            + "scheme, \(report.count(of: .notApplicable)) do not apply; "
            + "\(report.requests) requests in \(Int(report.seconds.rounded(.up))) s"
    }

    private enum Colour: String {
        case good = "32"
        case bad = "31"
        case doubtful = "33"
        case aside = "2"
    }

    private func mark(_ verdict: SelfTestResult.Verdict) -> String {
        switch verdict {
        case .held: "✓"
        case .broken: "✗"
        case .knownWeakness: "!"
        case .notApplicable: "–"
        }
    }

    private func colour(_ verdict: SelfTestResult.Verdict) -> Colour {
        switch verdict {
        case .held: .good
        case .broken: .bad
        case .knownWeakness: .doubtful
        case .notApplicable: .aside
        }
    }

    private func paint(_ text: String, in colour: Colour) -> String {
        style == .plain ? text : "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}

extension SelfTest.Report {
    /// One document; `checks` in the order in which they were asked.
    func json(_ url: String) -> JSONValue {
        let checks = results.map { check, finding -> JSONValue in
            [
                "name": .string(check.name), "family": .string(check.family.rawValue),
                "verdict": .string(finding.verdict.rawValue), "sent": .string(check.sent),
                "expected": .string(finding.expected), "came": .string(finding.observed),
            ]
        }
        return [
            "url": .string(url), "held": .integer(Int64(count(of: .held))),
            "broken": .integer(Int64(count(of: .broken))),
            "known_weaknesses": .integer(Int64(count(of: .knownWeakness))),
            "not_applicable": .integer(Int64(count(of: .notApplicable))),
            "requests": .integer(Int64(requests)),
            "seconds": .decimal(seconds), "checks": .array(checks),
        ]
    }
}
