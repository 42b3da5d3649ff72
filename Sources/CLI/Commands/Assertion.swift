import CountersignAuthority
import CountersignServer
import CountersignWire

extension Command {
    static let assertionKeys = Command(
        words: ["assertion", "keys"], summary: "show which keys sign what backends are told",
        options: [.data, .json],
        notes:
            "By their ids (`kid`, RFC 7638), as the gateway's `jwks` route lists them with "
            + "their public halves."
    ) { (run) throws(OperationalError) in
        let edition = try AssertionKeys(run.deployment()).latest()
        try run.show(edition) { "current: \(edition.current.id)\nnext:    \(edition.next.id)" }
        return .success
    }

    static let assertionRotate = Command(
        words: ["assertion", "rotate"], summary: "let the next key sign what backends are told",
        options: [.data, .json],
        notes: """
            The next key, which the `jwks` route has listed all along, signs from the next request on; a new \
            one is made to
            follow it. The old key stays listed for two minutes, until the last of its assertions has expired.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        try deployment.rotateAssertionKeys(at: run.now)
        let edition = try AssertionKeys(deployment).latest()
        try run.show(edition) { "\(edition.current.id) signs now; \(edition.next.id) is next" }
        return .success
    }
}

extension Invocation {
    fileprivate func show(_ edition: AssertionKeys.Edition, text: () -> String) throws(OperationalError) {
        let keys = edition.keys(at: now).map(\.id)
        try print(
            [
                "current": .string(edition.current.id), "next": .string(edition.next.id),
                "listed": .strings(keys),
            ], text: text)
    }
}
