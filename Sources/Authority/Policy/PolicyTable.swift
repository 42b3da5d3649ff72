import CountersignGate
import CountersignSchemes

extension PolicyKey {
    /// Every key.
    package static let all: [PolicyKey] =
        gateKeys + traffic + crossOrigin + accounts + legacy

    /// The settings that the gate judges requests by. A release may override them.
    package static let gateKeys: [PolicyKey] = [
        PolicyKey(
            name: "schemes", value: "NAME,…",
            meaning: "the signature schemes that requests of this app may use",
            fallback: SchemeName.messageSignatures.rawValue,
            expected: "one or more of \(SchemeName.allCases.map(\.rawValue).joined(separator: ", "))",
            visibility: .shown, apply: applySchemes),
        PolicyKey(
            name: "window", value: "60s | SCHEME=300s,…",
            meaning:
                "how far a signature's time may be from now, either way; of all schemes, or of each "
                + "that is named",
            fallback: "message-signatures=60s,sigv4=300s,form-md5=300s,auth-v1=600s,auth-v2=12h,auth-v4=12h",
            expected: "times from 1s to 24h such as 60s, 5m or form-md5=300s, joined by commas",
            visibility: .shown, apply: applyWindow),
        PolicyKey(
            name: "replay", value: "RULE | SCHEME=RULE,…",
            meaning: "which requests of schemes without nonces (sigv4, auth-v1) are accepted only once",
            fallback: "unsafe-only",
            expected:
                "strict, unsafe-only (GET and HEAD may repeat) or off; or such a rule as "
                + "sigv4=strict,auth-v1=off",
            visibility: .shown, apply: applyReplay),
        PolicyKey(
            name: "cover", value: "FIELD,…",
            meaning: "fields that must be sent and signed, beyond the scheme's own",
            fallback: "none", expected: "field names in lower case, joined by commas", visibility: .shown,
            apply: applyCover),
        PolicyKey(
            name: "label", value: "LABEL",
            meaning: "the label of the signature to verify if a request has several (message-signatures)",
            fallback: "the one tagged countersign",
            expected: "a label: lower-case letters, digits, `-`, `_`, `.`, `*`",
            visibility: .shown, apply: applyLabel),
        PolicyKey(
            name: "unsigned-payload", value: "on | off",
            meaning: "whether sigv4 requests may leave their body unsigned (UNSIGNED-PAYLOAD)",
            fallback: "off", expected: "on or off", visibility: .shown,
            apply: onOff { $0.unsignedPayload = $1 }),
        PolicyKey(
            name: "presigned", value: "15m", meaning: "the longest that a presigned sigv4 URL may live",
            fallback: "as long as sigv4's window", expected: "a time from 1s to 24h such as 15m",
            visibility: .shown,
            apply: applyPresigned),
        PolicyKey(
            name: "rsa-v1_5", value: "on | off",
            meaning: "whether signatures by rsa-v1_5-sha256 are accepted",
            fallback: "off", expected: "on or off", visibility: .shown, apply: onOff { $0.rsaV15 = $1 }),
        PolicyKey(
            name: "public-url", value: "https://HOST",
            meaning: "the scheme and host that auth-v4 clients sign, if the gateway is behind a proxy",
            fallback: "where the request came to",
            expected: "https://HOST or http://HOST, with an optional port and no path",
            visibility: .shown, apply: applyPublicURL),
        PolicyKey(
            name: "timezone", value: "+08:00",
            meaning: "the zone of the wall clock that form-md5 clients send",
            fallback: "+00:00", expected: "UTC, or an offset from -14:00 to +14:00 such as +08:00",
            visibility: .shown,
            apply: applyTimezone),
        PolicyKey(
            name: "form-md5-key", value: "pair | appended",
            meaning:
                "where form-md5 clients put the private key before they hash: among the parameters as "
                + "private_key=KEY, or directly after the last one",
            fallback: "pair", expected: "pair or appended", visibility: .shown, apply: applyFormMD5Key),
        PolicyKey(
            name: "debug", value: "on | off",
            meaning:
                "whether a refusal tells the caller its exact reason and what would mend it "
                + "(docs/explain.md)",
            fallback: "off", expected: "on or off", visibility: .shown,
            apply: { policy, text in
                guard let word = oneOf("on", "off")(&policy, text) else { return nil }
                policy.detail = word == "on" ? .exact : .coarse
                return word
            }),
        PolicyKey(
            name: "forward", value: "FIELD,…",
            meaning: "additional fields that the backend receives although no signature covers them",
            fallback: "none",
            expected: "field names in lower case, joined by commas, without those of the connection",
            visibility: .shown, apply: applyForward),
        PolicyKey(
            name: "assertion", value: "on | off",
            meaning:
                "whether the backend is sent a signed Countersign-Assertion, at some 20 µs of CPU a request",
            fallback: "off", expected: "on or off", visibility: .shown,
            apply: { policy, text in
                guard let word = oneOf("on", "off")(&policy, text) else { return nil }
                policy.assertion = word == "on" ? .signed : .none
                return word
            }),
        PolicyKey(
            name: "legacy-renewal", value: "on | off",
            meaning:
                "whether old clients renew their tokens with their login token: one that ran out is -101 to "
                + "those that do, -100 to those that do not",
            fallback: "off", expected: "on or off", visibility: .shown,
            apply: onOff { $0.legacyRenewal = $1 }),
    ]

    /// The settings of accounts and sessions.
    private static let accounts: [PolicyKey] = [
        PolicyKey(
            name: "slots", value: "RULE",
            meaning: "which sessions of one account may exist at once; a login ends those that it replaces",
            fallback: "single", expected: "single, per-platform, per-device-class, limit(N) or unlimited",
            visibility: .shown, apply: applySlots),
        PolicyKey(
            name: "token-lifetime", value: "2h",
            meaning: "how long a token is valid before it must be renewed",
            fallback: "2h", expected: "a time from 1s to 24h such as 2h", visibility: .shown,
            apply: applyTokenLifetime),
        PolicyKey(
            name: "session-idle", value: "90d", meaning: "how long a session is valid without being renewed",
            fallback: "90d", expected: "1d to 1000d, or a shorter time such as 12h", visibility: .shown,
            apply: applySessionIdle),
        PolicyKey(
            name: "session-max", value: "30d | off",
            meaning: "how long after its login a session ends, however often it is renewed",
            fallback: "off", expected: "off, 1d to 1000d, or a shorter time such as 12h", visibility: .shown,
            apply: applySessionMax),
        PolicyKey(
            name: "upload-tickets", value: "16",
            meaning:
                "how many unused upload tickets a session may have (an account four times as many): each "
                + "lets one upload in without a signature",
            fallback: "0", expected: "a number from 0, which allows none, to 1000", visibility: .shown,
            apply: applyUploadTickets),
        PolicyKey(
            name: "upload-ticket-max", value: "24h", meaning: "the longest that an upload ticket may live",
            fallback: "24h", expected: "a time from 1s to 24h such as 6h", visibility: .shown,
            apply: applyUploadTicketLifetime),
        PolicyKey(
            name: "enforcement", value: "enforce | observe[=14d]",
            meaning:
                "whether a request that fails verification reaches the backend, marked "
                + "Countersign-Verdict, unless its route has an enforcement of its own; observing ends "
                + "after at most 30 days, and can be renewed",
            fallback: "enforce", expected: "enforce, observe, or observe=14d", visibility: .shown,
            apply: applyEnforcement),
        PolicyKey(
            name: "registration", value: "open | admin",
            meaning: "how accounts are created: open to every caller, or by administrators only",
            fallback: "admin", expected: "open or admin", visibility: .shown, apply: applyRegistration),
        PolicyKey(
            name: "password-login", value: "on | off",
            meaning: "whether a password may be sent to sign in, over TLS",
            fallback: "off", expected: "on or off", visibility: .shown, apply: onOff { $0.passwordLogin = $1 }
        ),
        PolicyKey(
            name: "password-min", value: "8",
            meaning:
                "the fewest characters of a new password: told to devices, which check it, and checked here "
                + "where a password comes in clear",
            fallback: "8", expected: "a number from 1 to 64", visibility: .shown,
            apply: applyPasswordMinimum),
        PolicyKey(
            name: breachedPasswords, value: "/FILE",
            meaning:
                "a list of passwords that are refused where a new one comes in clear: SHA-1 in hexadecimal, "
                + "one a line, in ascending order, with `:COUNT` or without; a list that is not sorted is "
                + "refused. The file must be below the folder of `--policy-files`. Set this key on the "
                + "server's machine, not over the API",
            fallback: "none", expected: "the absolute path of a file that the server can read",
            visibility: .shown, apply: applyBreachedPasswords),
    ]

    /// Its file is checked when it is set.
    static let breachedPasswords = "breached-passwords"

    /// The settings for app versions in the field.
    private static let legacy: [PolicyKey] = [
        PolicyKey(
            name: "legacy-login", value: "on | off",
            meaning: "whether the login routes of old clients are answered",
            fallback: "off", expected: "on or off", visibility: .shown, apply: onOff { $0.legacyLogin = $1 }),
        PolicyKey(
            name: "legacy-upgrade", value: "on | off",
            meaning:
                "whether an old client's login that brings the password itself moves its account to OPAQUE: "
                + "no rung opens it from then on, so its old app versions are answered 0",
            fallback: "off", expected: "on or off", visibility: .shown, apply: onOff { $0.legacyUpgrade = $1 }
        ),
        PolicyKey(
            name: "legacy-session", value: "upstream | authority",
            meaning: "the issuer of legacy clients' tokens: the backend or the authority",
            fallback: "upstream", expected: "upstream or authority", visibility: .shown,
            apply: applyLegacySession),
        PolicyKey(
            name: "legacy-host", value: "HOST[:PORT]",
            meaning:
                "the host whose unsigned requests belong to this app, if it is no other app's; with a port, "
                + "at that port alone",
            fallback: "none", expected: "a host name in lower case, with a port or without",
            visibility: .shown,
            apply: applyHost),
        PolicyKey(
            name: "token-in", value: "PLACE,…",
            meaning:
                "where scheme token reads the token of a request without a signature: bearer (the "
                + "Authorization field), form:NAME, query:NAME, cookie:NAME, header:NAME; exactly one of "
                + "them may contain a token",
            fallback: "bearer",
            expected: "up to 8 places such as bearer,form:token,query:token,cookie:sid,header:x-token",
            visibility: .shown,
            apply: places(of: [.bearer, .form, .query, .cookie, .header]) { $0.tokenLocations = $1 }),
        PolicyKey(
            name: "user-in", value: "PLACE,… | none",
            meaning:
                "where such a request may name its user, which must match the token: form:NAME, query:NAME, "
                + "cookie:NAME, header:NAME",
            fallback: "form:userId", expected: "none, or up to 8 places such as form:userId,header:x-user-id",
            visibility: .shown,
            apply: places(of: [.form, .query, .cookie, .header], orNone: true) { $0.userLocations = $1 }),
        PolicyKey(
            name: "release-in", value: "PLACE,…",
            meaning:
                "where such a request names the app's version, so that it can be retired: form:NAME, "
                + "query:NAME, cookie:NAME, header:NAME, user-agent:/PATTERN/ with one group; the first "
                + "that has a value counts",
            fallback: "none: the version of the last login or renewal",
            expected: "up to 8 places such as form:ver,header:x-app-version,user-agent:/Shop\\/([0-9.]+)/",
            visibility: .shown, apply: places(of: statedKinds) { $0.releaseLocations = $1 }),
        PolicyKey(
            name: "platform-in", value: "PLACE,…",
            meaning:
                "where such a request names its platform, if several platforms have a version of that name",
            fallback: "none: the platform of the login",
            expected: "up to 8 places such as form:plat,header:x-platform",
            visibility: .shown, apply: places(of: statedKinds) { $0.platformLocations = $1 }),
        PolicyKey(
            name: "legacy-paths", value: "ENDPOINT:/PATH,…",
            meaning:
                "where old clients sign in, sign out, renew tokens, sign up and change passwords: login, "
                + "logout, token, signup, password; a GET or POST of exactly that path",
            fallback: "login at /login/login.php and /login/loginhmac.php, token at /login/token.php",
            expected:
                "such as login:/user/login,signup:/user/register: endpoints login, logout, token, signup and "
                + "password at paths of up to 128 visible characters with one reading, each path once",
            visibility: .shown, apply: applyLegacyPaths),
        PolicyKey(
            name: "legacy-names", value: "NAME:PARAMETER,…",
            meaning:
                "the names of the parameters of old clients, and of the members of the answers to them: "
                + "account, password, new-password, token, login-token, user",
            fallback: "username, password, newPassword, token, loginToken, userId",
            expected:
                "such as account:phoneNo,password:pwd: names account, password, new-password, token, "
                + "login-token and user, each once, for different parameters of letters, digits, `_` and `-`",
            visibility: .shown, apply: applyLegacyNames),
        PolicyKey(
            name: "legacy-rung", value: "RUNG",
            meaning:
                "the rung of accounts that old clients make (registration=open, and a signup path): the "
                + "values that they send are stored as on this rung",
            fallback: "plain-get for a GET, plain-post for a POST",
            expected:
                "plain-get, plain-post, base64, md5, md5-salt or hmac-md5; hmac-md5-time sends another value "
                + "each minute, and none that could be kept",
            visibility: .shown, apply: applyLegacyRung),
        PolicyKey(
            name: "legacy-salt", value: "TEXT",
            meaning: "the salt of the md5-salt rung; kept sealed",
            fallback: "none", expected: "1 to 256 bytes", visibility: .secret, apply: applySecret),
        PolicyKey(
            name: "legacy-key", value: "TEXT",
            meaning: "the key of the hmac-md5 rungs; kept sealed",
            fallback: "none", expected: "1 to 256 bytes", visibility: .secret, apply: applySecret),
    ]
}
