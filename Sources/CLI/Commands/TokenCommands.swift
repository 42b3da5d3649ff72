import CountersignAuthority
import CountersignWire

extension Command {
    static let tokenAdd = Command(
        words: ["token", "add"], summary: "make a token with which a program may call the admin API",
        positionals: [Positional(name: "NAME")],
        options: [
            .scopes(meaning: "what it may do, or several joined by commas"),
            .value(
                "expires", placeholder: "TIME", meaning: "when it ends: \(TimeText.expected) (default: never)"
            ),
            .data, .json,
        ],
        notes: """
            Prints the token once; only its digest is kept, in DATA/api-tokens of this machine. A running
            server takes it at once. The audit log names the token as the author of what it changes. Scopes:

            """
                + APIScope.allCases.map { "  \($0.rawValue)\n      \($0.meaning)" }.joined(separator: "\n")
    ) { (run) throws(OperationalError) in
        let scopes = try APIScope.set(of: run.arguments.values("scope"))
        guard !scopes.isEmpty else {
            throw OperationalError(.usage, message: "--scope is missing: a token without one may do nothing")
        }
        let expires = try run.arguments.value("expires").map { (text) throws(OperationalError) in
            try TimeText.parse(text, option: "expires", now: run.now)
        }
        if let expires, expires <= run.now {
            throw OperationalError(
                .usage,
                message: "--expires `\(run.arguments.value("expires") ?? "")`: expected a time to come")
        }
        let made = try run.deployment().addAPIToken(
            run.required("NAME"), scopes: scopes, expires: expires, at: run.now)
        let json: JSONValue = .object([("token", .string(made.text))] + made.token.members(at: run.now))
        try run.print(json) { made.text }
        run.console.note("note: this is shown once; `countersign token revoke \(made.token.name)` ends it")
        return .success
    }

    static let tokenList = Command(
        words: ["token", "list"], summary: "list the tokens of the admin API and the sessions of the console",
        options: [.data, .json]
    ) { (run) throws(OperationalError) in
        let tokens = try run.apiTokens()
        let json: JSONValue = ["tokens": .array(tokens.map { .object($0.members(at: run.now)) })]
        try run.print(json) {
            if tokens.isEmpty { return "no tokens; `countersign token add NAME --scope SCOPE` makes one" }
            return Table.text(
                head: ["ID", "NAME", "KIND", "SCOPES", "SINCE", "EXPIRES"],
                rows: tokens.map { token in
                    [
                        token.id, token.name, token.kind.rawValue,
                        token.scopes.map(\.rawValue).sorted().joined(separator: ","),
                        TimeText.text(token.created), token.expires.map { TimeText.text($0) } ?? "never",
                    ]
                })
        }
        return .success
    }

    static let tokenRevoke = Command(
        words: ["token", "revoke"], summary: "end a token of the admin API, or a session of the console",
        positionals: [Positional(name: "NAME")],
        options: [.data, .json],
        notes:
            "NAME is an id, or a name: all of that name end. A running server refuses them from the next "
            + "request on."
    ) { (run) throws(OperationalError) in
        let name = try run.required("NAME")
        let revoked = try run.deployment().revokeAPITokens(name, at: run.now)
        try run.print(["name": .string(name), "revoked": .strings(revoked.map(\.id))]) {
            revoked.map { "revoked \($0.name) (\($0.id), \($0.kind.rawValue))" }.joined(separator: "\n")
        }
        return .success
    }
}

extension APIScope {
    /// Those that the values of `--scope` name, each one or several joined by commas.
    static func set(of values: [String]) throws(OperationalError) -> Set<APIScope> {
        var scopes: Set<APIScope> = []
        for text in values.flatMap({ $0.split(separator: ",").map(String.init) }) {
            guard let scope = APIScope(rawValue: text) else {
                let known = APIScope.allCases.map(\.rawValue).joined(separator: ", ")
                throw OperationalError(.usage, message: "--scope `\(text)`: expected one of \(known)")
            }
            scopes.insert(scope)
        }
        return scopes
    }
}

extension Invocation {
    /// Without links to the console, which nothing lists.
    fileprivate func apiTokens() throws(OperationalError) -> [APIToken] {
        try APITokenFile(DataFolder(dataFolder(), absence: .fail)).tokens().filter { $0.kind != .link }
    }
}

extension APIToken {
    fileprivate func members(at now: Int64) -> [(name: String, value: JSONValue)] {
        [
            ("id", .string(id)), ("name", .string(name)), ("kind", .string(kind.rawValue)),
            ("scopes", .strings(scopes.map(\.rawValue).sorted())), ("created", .integer(created)),
            ("expires", expires.map { .integer($0) } ?? .null),
            ("expired", .bool(expires.map { $0 <= now } ?? false)),
        ]
    }
}
