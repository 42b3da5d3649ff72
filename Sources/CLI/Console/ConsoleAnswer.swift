import CountersignHTTP
import CountersignServer
import CountersignWire

/// What a page's function returns.
enum ConsoleAnswer: Sendable {
    case page(ConsolePage)
    /// After a form has done its work: a reload of the page that follows does nothing again.
    case redirect(String)
    /// JSON to keep as a file.
    case download(name: String, body: [UInt8])
}

/// The contents of a page, without what all pages have.
struct ConsolePage: Sendable {
    let title: String
    let body: HTML
    var status = 200
    /// Pages that this one belongs to, from the first on.
    var trail: [(title: String, path: String)] = []

    init(_ title: String, status: Int = 200, trail: [(title: String, path: String)] = [], body: HTML) {
        (self.title, self.status, self.trail, self.body) = (title, status, trail, body)
    }
}

/// Fields of every response of the console.
enum ConsoleFields {
    /// Only the console's own files: no script, style or form of another place, and no frame around it.
    /// Source: CSP Level 3, Trusted Types.
    private static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
        "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ].joined(separator: "; ")

    static let all = [
        ServerResponse.Field("Content-Security-Policy", value: policy),
        ServerResponse.Field("X-Content-Type-Options", value: "nosniff"),
        ServerResponse.Field("X-Frame-Options", value: "DENY"),
        // `no-referrer` would have browsers hide the origin of the console's own forms.
        ServerResponse.Field("Referrer-Policy", value: "same-origin"),
        ServerResponse.Field("Cross-Origin-Opener-Policy", value: "same-origin"),
        ServerResponse.Field("Cross-Origin-Resource-Policy", value: "same-origin"),
        ServerResponse.Field("Permissions-Policy", value: "camera=(), geolocation=(), microphone=()"),
    ]

    static let unstored = all + [ServerResponse.Field("Cache-Control", value: "no-store")]
}

extension ServerResponse {
    static func page(_ markup: HTML, status: Int = 200, fields: [Field] = []) -> ServerResponse {
        ServerResponse(
            status: status, type: "text/html; charset=utf-8", fields: ConsoleFields.unstored + fields,
            body: Array(markup.text.utf8))
    }

    /// To a path of the console. Source: RFC 9110 §15.4.4.
    static func seeOther(_ path: String, fields: [Field] = []) -> ServerResponse {
        ServerResponse(
            status: 303, type: "text/plain; charset=utf-8",
            fields: ConsoleFields.unstored + [Field("Location", value: path)] + fields, body: [])
    }
}
