import CountersignAuthority
import CountersignSchemes
import CountersignWire

extension Command {
    static let answerKeyShow = Command(
        words: ["answer-key", "show"], summary: "show the keys that apps verify the server's answers with",
        options: [.data, .json],
        notes: """
            The public halves of the key that signs now and of the next one, when the next one was made, and \
            the live
            releases that were added before: app versions of these may not know it, and a rotation would cut \
            them off.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        try run.show(deployment.answerSeeds(), of: deployment)
        return .success
    }

    static let answerKeyRotate = Command(
        words: ["answer-key", "rotate"], summary: "let the next key sign the server's answers",
        options: [
            .flag(
                "force", meaning: "rotate although live releases were added before the next key was made")
        ] + Option.cutOff + [.data, .json],
        notes: """
            The next key, with which apps are built as `next_authority_key`, signs from the next answer on; \
            a new one is made
            to follow it. A running server takes it at once. Clients that have both keys go on; they refuse \
            the former key
            from the first answer on that they see under the next. Clients that have only the former one \
            believe no answer
            any more, until the app is updated.

            Where the key has leaked: rotate with --force, and publish app versions with the new keys.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let lacking = try deployment.releasesWithoutNextAnswerKey(at: run.now)
        let isForced = run.arguments.has("force")
        let cutOff = try CutOff(lacking, in: deployment, at: run.now)
        // Without --force, the rotation is refused if it would cut off any release.
        if lacking.isEmpty || isForced || run.arguments.has("dry-run") {
            guard try run.isToCutOff(cutOff, by: "answer-key rotate") else { return .success }
        }
        let rotated = try deployment.rotateAnswerKey(
            isForced ? .evenIfReleasesLackTheNextKey : .onlyIfEveryReleaseHasTheNextKey, at: run.now)
        try run.show(rotated, of: deployment, cuttingOff: cutOff)
        run.console.note(
            "note: build the next app versions with both keys, `authority_key` and `next_authority_key`; "
                + "`release add` prints them, too")
        return .success
    }

    static let registrationKeyRotate = Command(
        words: ["registration-key", "rotate"], summary: "make a new key that sign-ups are encrypted to",
        options: [.data, .json],
        notes: """
            Clients are told the key in a signed answer each time, so that no app changes. A running server \
            uses the new one
            at once. The former one finishes the sign-ups that were begun under it, for ten minutes, and is \
            then erased: by
            the server within seconds, without one by its next start, and at the latest by the next rotation.
            """
    ) { (run) throws(OperationalError) in
        let now = run.now
        try run.deployment().rotateRegistrationKey(at: now)
        let until = now + Deployment.formerRegistrationKeyLifetime
        try run.print(["former_until": .integer(until)]) {
            "a new registration key is in use; the former one is accepted until \(TimeText.text(until))"
        }
        return .success
    }
}

extension Invocation {
    /// The most releases that are named to people.
    private static let mostNamed = 10

    fileprivate func show(
        _ seeds: AnswerSeeds, of deployment: Deployment, cuttingOff cutOff: CutOff? = nil
    ) throws(OperationalError) {
        let keys = try seeds.publicHalves()
        let (current, next) = (
            Base64.encode(keys.current.span, as: .url), Base64.encode(keys.next.span, as: .url)
        )
        let lacking = try deployment.releasesWithoutNextAnswerKey(at: now)
        var json: [(name: String, value: JSONValue)] = [
            ("authority_key", .string(current)), ("next_authority_key", .string(next)),
            ("next_made", .integer(seeds.nextMade)),
            ("releases_without_next", .array(lacking.map(\.json))),
        ]
        if let cutOff { json.append(("cut_off", cutOff.json)) }
        try print(.object(json)) {
            var lines = [
                "authority_key:      \(current)", "next_authority_key: \(next)",
                "made:               \(TimeText.text(seeds.nextMade))",
                "live releases that were added before: \(lacking.count)",
            ]
            lines += lacking.prefix(Invocation.mostNamed).map {
                "  \($0.app) \($0.version) on \($0.platform) (\($0.id))"
            }
            if lacking.count > Invocation.mostNamed {
                lines.append("  and \(lacking.count - Invocation.mostNamed) more")
            }
            return lines.joined(separator: "\n")
        }
    }
}

extension Release {
    fileprivate var json: JSONValue {
        [
            "key_id": .string(id.description), "app": .string(app.description),
            "platform": .string(platform.description), "version": .string(version.description),
        ]
    }
}
