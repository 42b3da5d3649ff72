import CountersignAuthority

/// What is shown without a session.
enum SignInPage {
    /// `code` is that of the link; empty without one, or if it is of no use.
    static func markup(code: String) -> HTML {
        guard !code.isEmpty, code.utf8.count <= 128 else {
            return ConsolePage(
                "Sign in",
                body: """
                    <p>The console is opened by a link, which works once and for \(APIToken.linkSeconds)
                    seconds. On the server's machine, run:</p>
                    <pre><code>countersign console</code></pre>
                    <p>It prints the link. If you came here by one, it has expired or was used already: ask
                    for another.</p>
                    """
            ).markupAlone
        }
        return ConsolePage(
            "Sign in",
            body: """
                <p>This link signs this browser in to the console, once.</p>
                <form method="post" action="\(ConsolePath.path("sign-in"))">
                <input type="hidden" name="code" value="\(code)">
                <button>Sign in</button>
                </form>
                """
        ).markupAlone
    }
}
