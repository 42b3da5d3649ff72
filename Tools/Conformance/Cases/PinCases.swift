import CountersignLab
import CountersignTestServer
import CountersignWire

extension ConformanceCase {
    static let certificates: [ConformanceCase] = [
        ConformanceCase(
            "unknown-certificate", section: "Pins",
            requirement: "A server whose certificate's key is not pinned gets no byte of a request."
        ) { (trial) throws(ConformanceError) in try expectRefusal(of: trial.certificates.stranger, in: trial)
        },
        ConformanceCase(
            "pinned-key-for-another-host", section: "Pins",
            requirement:
                "A certificate that signs itself is refused where it is for another host, though its key is "
                + "pinned."
        ) { (trial) throws(ConformanceError) in try expectRefusal(of: trial.certificates.otherHost, in: trial)
        },
        ConformanceCase(
            "pinned-key-expired", section: "Pins",
            requirement:
                "A certificate that signs itself is refused where its dates are past, though its key is "
                + "pinned."
        ) { (trial) throws(ConformanceError) in try expectRefusal(of: trial.certificates.expired, in: trial)
        },
        ConformanceCase(
            "backup-pin", section: "Pins",
            requirement: "A server that changes to the key of the backup pin is called as before."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            try trial.show(trial.certificates.backup)
            let result: ConformanceError?
            do throws(ConformanceError) {
                try trial.call(port)
                try port.done("refresh")
                try trial.call(port)
                result = nil
            } catch {
                result = error
            }
            try trial.show(trial.certificates.current)
            if let result { throw result }
        },
    ]

    private static func expectRefusal(of certificate: IssuedCertificate, in trial: Trial)
        throws(ConformanceError)
    {
        let port = try trial.signedInPort()
        try trial.show(certificate)
        let reply: ClientPort.Reply
        do {
            reply = try trial.tryCall(port)
        } catch {
            try trial.show(trial.certificates.current)
            throw error
        }
        try trial.show(trial.certificates.current)
        try trial.expect(
            trial.front.exchanges.isEmpty, that: "Nothing is sent to such a server.",
            observed: "the port sends \(trial.sent)")
        try trial.expectFailure(reply, that: "The call fails.")
        try trial.expectState(port, is: "signed-in", that: "A server that is not trusted ends no session.")
        try trial.call(port)
    }
}

extension ConformanceCase {
    /// A manifest that must not be taken up, and why.
    struct RefusedManifest: Sendable {
        let reason: String
        let manifest: TestManifest

        init(
            _ reason: String, version: Int = 6, at now: Int64, change: (inout TestManifest) -> Void = { _ in }
        ) {
            var manifest = TestManifest(version: version, at: now)
            change(&manifest)
            (self.reason, self.manifest) = (reason, manifest)
        }

        /// Before any is taken up. Each differs from one that would be in a single respect.
        static func all(at now: Int64) -> [RefusedManifest] {
            [
                RefusedManifest("signed by a stranger", at: now) { $0.signer = .stranger },
                RefusedManifest("expired", at: now) { $0.validity = now - 7_200...now - 3_600 },
                RefusedManifest("not valid yet", at: now) { $0.validity = now + 3_600...now + 7_200 },
                RefusedManifest(
                    "older than the built-in pins", version: TestManifest.builtInVersion - 1, at: now),
                RefusedManifest(
                    "of the version of the built-in pins", version: TestManifest.builtInVersion, at: now),
                RefusedManifest("for another app", at: now) {
                    $0.app = TestDeployment.App.shortLived.rawValue
                },
            ]
        }
    }

    static let pinManifests: [ConformanceCase] = [
        ConformanceCase(
            "pin-manifest", section: "Pin manifests",
            requirement:
                "Only a manifest that is signed, of its time, for the app and newer replaces the pins; it "
                + "stays in force after a restart.",
            feature: "pin-manifest"
        ) { (trial) throws(ConformanceError) in
            let result: ConformanceError?
            do throws(ConformanceError) {
                try tryManifests(trial)
                result = nil
            } catch {
                result = error
            }
            try trial.show(trial.certificates.current)
            if let result { throw result }
        }
    ]

    private static func tryManifests(_ trial: Trial) throws(ConformanceError) {
        let port = try trial.signedInPort()
        let (now, certificates, state) = (trial.now, trial.certificates, trial.portCount)
        for refused in RefusedManifest.all(at: now) {
            try expectRefused(refused, by: port, in: trial)
            try expectNothingSent(by: port, to: certificates.successor, in: trial)
            try trial.show(certificates.current)
            try trial.call(port)
        }

        let good = TestManifest(version: 6, at: now)
        try serve(good, in: trial)
        let answer = try port.done("update-pins")
        try trial.expectRulesUsed()
        let version = answer.number("version")
        try trial.expect(
            version == good.version, that: "`update-pins` reports the `version` \(good.version).",
            observed: "it reports \(version.map { String($0) } ?? "none")")
        try expectReplaced(for: port, in: trial)

        try trial.show(certificates.successor)
        let older = RefusedManifest("older than the one in force", version: good.version - 1, at: now)
        try expectRefused(older, by: port, in: trial)
        port.crash()
        let next = try trial.port(state: state)
        try expectReplaced(for: next, in: trial)
        try trial.show(certificates.successor)
        try expectRefused(older, by: next, in: trial)
    }

    /// The next `GET pins/APP` is answered with `manifest`.
    private static func serve(_ manifest: TestManifest, in trial: Trial) throws(ConformanceError) {
        guard let text = trial.manifests.text(of: manifest, naming: trial.certificates) else {
            throw .notStaged("the manifest cannot be signed")
        }
        let path = Trial.own("/pins/\(TestDeployment.App.ordinary.rawValue)")
        trial.front.intercept("GET", path: path) { (_, _) in
            .answer(RawResponse(200, fields: [("Content-Type", "application/json")], body: text))
        }
    }

    private static func expectRefused(
        _ refused: RefusedManifest, by port: ClientPort, in trial: Trial
    ) throws(ConformanceError) {
        try serve(refused.manifest, in: trial)
        let reply = try port.act("update-pins")
        try trial.expectRulesUsed()
        try trial.expectFailure(reply, that: "A manifest that is \(refused.reason) is refused.")
    }

    /// The certificates that the manifest names are accepted; those that the port was built with, and one
    /// that was never named, are not.
    private static func expectReplaced(for port: ClientPort, in trial: Trial) throws(ConformanceError) {
        let certificates = trial.certificates
        for one in [certificates.successor, certificates.successorBackup] {
            try trial.show(one)
            try trial.call(port)
        }
        for one in [certificates.current, certificates.backup, certificates.stranger] {
            try expectNothingSent(by: port, to: one, in: trial)
        }
    }

    private static func expectNothingSent(
        by port: ClientPort, to certificate: IssuedCertificate, in trial: Trial
    ) throws(ConformanceError) {
        try trial.show(certificate)
        trial.front.clearExchanges()
        let reply = try trial.tryCall(port)
        try trial.expect(
            trial.front.exchanges.isEmpty,
            that: "Nothing is sent to a server whose key is not in the pins in force.",
            observed: "the port sends \(trial.sent)")
        try trial.expectFailure(reply, that: "The call fails.")
    }
}
