import CountersignSeal
import CountersignWire

/// How an operator sets up the gateway for a row.
struct GatewaySetup: Sendable {
    let row: RowProfile
    let key: AppKey

    /// What the backend's routes ask for.
    var level: String { row.scheme == .openRoute ? "open" : "signed" }

    /// The policy of the app, as `KEY=VALUE`.
    var policy: [String] {
        switch row.scheme {
        case .ladder, .tokens, .formMD5:
            // Without a session only the login: the bank knows its users by their tokens.
            return [
                "schemes=form-md5", "legacy-login=on", "legacy-session=authority",
                "legacy-renewal=on", "anonymous=none",
                "legacy-salt=\(key.ladder)", "legacy-key=\(key.ladder)",
            ]
        case .token:
            return [
                "schemes=token", "legacy-host=\(Setting.host)", "legacy-login=on", "legacy-session=authority",
                "legacy-renewal=on", "anonymous=none", "release-in=header:x-app-version",
            ]
        case .openRoute: return ["legacy-host=\(Setting.host)", "legacy-session=upstream"]
        case .apiKey(let scheme): return ["schemes=\(scheme.rawValue)"]
        case .messageSignaturesWithPassword: return ["password-login=on", "anonymous=none"]
        case .countersign: return ["anonymous=none"]
        }
    }

    /// The words of `release add` that bring along the key which the app has already, whose secret is typed; empty where ours makes one.
    var release: [String] {
        switch row.scheme {
        case .ladder, .tokens, .formMD5: imported("form-md5")
        // Without a secret.
        case .token: ["--scheme", "token", "--key-id", key.id]
        case .apiKey(let scheme): imported(scheme.rawValue)
        // The app's next version signs, and is released; what stays on the open routes has no release.
        case .openRoute: []
        case .messageSignaturesWithPassword, .countersign: []
        }
    }

    /// The words of `account add`; nil where the gateway knows no users. The name and the number of the user follow.
    var account: [String]? {
        switch row.scheme {
        case .ladder(let rung): ["--legacy", rung.rawValue]
        case .tokens, .token: ["--legacy", "plain-post"]
        case .formMD5: ["--legacy", "md5"]
        case .apiKey, .openRoute: nil
        case .messageSignaturesWithPassword, .countersign: []
        }
    }

    private func imported(_ scheme: String) -> [String] {
        ["--scheme", scheme, "--key-id", key.id, "--secret-stdin"]
    }
}
