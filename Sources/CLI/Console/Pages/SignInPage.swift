import CountersignAuthority

/// What is shown without a session.
enum SignInPage {
    /// `link` is the link that was followed, and its code; nil without one, and if it is of no use.
    static func markup(for link: (token: APIToken, code: String)?) -> HTML {
        guard let link else {
            return ConsolePage(
                "Sign in",
                body: """
                    <p>The console is opened by a link, which works once and for \(APIToken.linkSeconds)
                    seconds. On the server's machine, run:</p>
                    <pre><code>countersign console</code></pre>
                    <p>or, for an installed service, <code>countersign-admin console</code>. It prints the
                    link. If you came here by one, it has expired or was used already: ask for another.</p>
                    """
            ).markupAlone
        }
        let isAll = link.token.scopes.count == APIScope.allCases.count
        let scopes = isAll ? "everything" : link.token.scopes.map(\.rawValue).sorted().joined(separator: ", ")
        return ConsolePage(
            "Sign in",
            body: """
                <p>This link signs this browser in to the console, once.</p>
                \(ConsoleMarkup.facts([
                    ("Operator", "\(link.token.name)"), ("Scopes", "\(scopes)"),
                ]))
                <form method="post" action="\(ConsolePath.path("sign-in"))">
                <input type="hidden" name="code" value="\(link.code)">
                <button>Sign in</button>
                </form>
                """
        ).markupAlone
    }
}
