import CountersignAuthority
import CountersignHandshake
import CountersignWire

// The authority's routes for accounts and sessions, described.

/// base64url of so many bytes, without padding.
private func bytes(_ count: Int) -> APISchema {
    let characters = (count * 8 + 5) / 6
    return .sized(characters...characters)
}

private let device = APISchema.open([
    APIMember("signing_key", schema: .text, presence: .optional),
    APIMember("agreement_key", schema: .text, presence: .optional),
    APIMember("class", schema: .text, presence: .optional),
    APIMember("name", schema: .text, presence: .optional),
    APIMember("key_storage", schema: .text, presence: .optional),
])

private let shownSession = [
    APIMember("session", schema: .text),
    APIMember(
        "device",
        schema: .object([APIMember("class", schema: .text), APIMember("name", schema: .text)])),
    APIMember("key_storage", schema: .nullable(.text)), APIMember("created", schema: .time),
    APIMember("used", schema: .time), APIMember("idle", schema: .time),
]

private let opened = APISchema.open([
    APIMember("account", schema: .text), APIMember("session", schema: .text),
    APIMember("token", schema: .text), APIMember("expires", schema: .time),
    APIMember("idle", schema: .time), APIMember("slots", schema: .text),
])

private let finish = [
    APIMember("login_id", schema: .text), APIMember("ke3", schema: bytes(64)),
    APIMember("signature", schema: bytes(64)), APIMember("mac", schema: bytes(32)),
]

private let work = APIMember(
    "work", schema: .open([]), presence: .optional,
    meaning: "the solution of a puzzle that an earlier refusal has set")

extension RouteDescription {
    static let registrationStart = RouteDescription(
        id: "registration.start", method: "POST", path: "/registration/start", admission: .release,
        summary: "Begin a sign-up, or a new password by a reset code",
        body: .open([
            APIMember("account", schema: .text), APIMember("request", schema: bytes(32)),
            APIMember("reset", schema: .boolean, presence: .optional),
        ]),
        response: .object([
            APIMember("response", schema: .text), APIMember("handle", schema: .text),
            APIMember("registration_key", schema: .text), APIMember("app", schema: .text),
            APIMember("password_min", schema: .count),
        ]))

    static let registrationFinish = RouteDescription(
        id: "registration.finish", method: "POST", path: "/registration/finish", admission: .release,
        summary: "Store the registration, encrypted to the authority",
        body: .open([
            APIMember("account", schema: .text), APIMember("handle", schema: .text),
            APIMember("sealed_record", schema: .text),
            APIMember("device", schema: .open([]), presence: .optional),
        ]),
        response: .object([APIMember("account", schema: .text)]))

    static let loginStart = RouteDescription(
        id: "login.start", method: "POST", path: "/login/start", admission: .release,
        operation: .loginStart, summary: "Begin a login (OPAQUE)",
        body: .open([
            APIMember("account", schema: .text), APIMember("ke1", schema: bytes(96)),
            APIMember("device", schema: device),
            APIMember("proof", schema: .open([]), presence: .optional), work,
        ]),
        response: .object([
            APIMember("login_id", schema: .text), APIMember("ke2", schema: .text),
            APIMember("app", schema: .text),
            APIMember("key_storage", schema: .text, presence: .optional),
        ]))

    static let loginFinish = RouteDescription(
        id: "login.finish", method: "POST", path: "/login/finish", admission: .release, operation: .login,
        summary: "Finish a login, and open a session", body: .open(finish), response: opened)

    static let loginPassword = RouteDescription(
        id: "login.password", method: "POST", path: "/login/password", admission: .release,
        operation: .login,
        summary: "Log in with the password itself, where policy `password-login` allows it",
        body: .open([
            APIMember("account", schema: .text), APIMember("password", schema: .text),
            APIMember("device", schema: device), work,
        ]),
        response: opened)

    static let token = RouteDescription(
        id: "token", method: "POST", path: "/token", admission: .release, operation: .refresh,
        summary: "Renew a session: with a device's key, or with a login token",
        body: .open([
            APIMember(
                "login_token", schema: .text, presence: .optional,
                meaning: "of a bearer session, and then no other member"),
            APIMember("token", schema: .text, presence: .optional),
            APIMember("attempt", schema: .text, presence: .optional),
            APIMember("time", schema: .time, presence: .optional),
            APIMember("counter", schema: .integer(1...(1 << 53)), presence: .optional),
            APIMember("nonce", schema: .text, presence: .optional),
            APIMember(
                "purpose", schema: .choice(RefreshTranscript.Purpose.allCases.map(\.rawValue)),
                presence: .optional),
            APIMember("mac", schema: bytes(32), presence: .optional),
            APIMember("signature", schema: bytes(64), presence: .optional),
        ]),
        response: .open([
            APIMember("token", schema: .text), APIMember("expires", schema: .time),
            APIMember("idle", schema: .time),
        ]))

    static let logout = RouteDescription(
        id: "logout", method: "POST", path: "/logout", admission: .endingSession,
        summary: "End the session that calls, also with an expired token", response: .object([]))

    static let session = RouteDescription(
        id: "session", method: "GET", path: "/session", admission: .session,
        summary: "Show the session that calls",
        response: .object(
            [
                APIMember("account", schema: .text), APIMember("epoch", schema: .count),
                APIMember("expires", schema: .time),
            ] + shownSession))

    static let sessions = RouteDescription(
        id: "sessions", method: "GET", path: "/sessions", admission: .session,
        summary: "List the account's live sessions, the newest",
        response: .object([
            APIMember(
                "sessions",
                schema: .list(
                    .object(
                        shownSession + [
                            APIMember("platform", schema: .text),
                            APIMember("current", schema: .boolean, presence: .optional),
                        ]))),
            APIMember("more", schema: .boolean),
        ]))

    static let sessionRevoke = RouteDescription(
        id: "sessions.revoke", method: "DELETE", path: "/sessions/*", admission: .session,
        summary: "End another session of the account",
        parameters: [.init("session", in: .path, schema: .text, meaning: "the session's id")],
        response: .object([]))

    static let passwordStart = RouteDescription(
        id: "password.start", method: "POST", path: "/password/start", admission: .session,
        summary: "Begin a change of the password",
        body: .open([
            APIMember("ke1", schema: bytes(96)), APIMember("request", schema: bytes(32)),
        ]),
        response: .object([
            APIMember("login_id", schema: .text), APIMember("ke2", schema: .text),
            APIMember("response", schema: .text), APIMember("handle", schema: .text),
            APIMember("registration_key", schema: .text), APIMember("password_min", schema: .count),
        ]))

    static let passwordFinish = RouteDescription(
        id: "password.finish", method: "POST", path: "/password/finish", admission: .session,
        summary: "Replace the password; the account's other sessions end",
        body: .open(
            finish + [APIMember("handle", schema: .text), APIMember("sealed_record", schema: .text)]),
        response: .object([]))
}
