import CountersignServer
import CountersignWire

/// An operation of the admin API that operators can run from a page, by a form of its own. The form's fields
/// are the operation's inputs; what is here is how it speaks to people.
struct ConsoleAction: Sendable {
    enum Weight: Sendable {
        case ordinary
        /// It cuts callers off or cannot be undone: the form asks for the subject's name once more.
        case grave
    }

    enum Outcome: Sendable {
        /// The page of the subject, which shows the change.
        case page
        /// What the command has printed, which is shown once: a secret, or a report.
        case report
    }

    /// The id of the operation.
    let operation: String
    /// Above the form and on its button.
    let title: String
    /// On the link to it.
    let link: String
    /// What will happen, in one or two sentences.
    let consequence: String
    /// The inputs that the link has set; the others are fields of the form.
    let subject: [String]
    let weight: Weight
    let outcome: Outcome
    /// The page to go to, by the values of the form.
    let page: @Sendable ([String: String]) -> String

    private init(
        _ operation: String, title: String, link: String? = nil, subject: [String],
        weight: Weight = .ordinary,
        outcome: Outcome = .page, page: @escaping @Sendable ([String: String]) -> String, consequence: String
    ) {
        self.operation = operation
        self.title = title
        self.link = link ?? title
        self.subject = subject
        self.weight = weight
        self.outcome = outcome
        self.page = page
        self.consequence = consequence
    }

    static func named(_ operation: String) -> ConsoleAction? { all.first { $0.operation == operation } }

    /// The value that a grave form asks for again.
    var confirmed: String? { weight == .grave ? subject.last : nil }

    private static let app: @Sendable ([String: String]) -> String = {
        ConsolePath.path("apps", $0["app"] ?? "")
    }
    private static let messages: @Sendable ([String: String]) -> String = {
        ConsolePath.path("apps", $0["app"] ?? "", "messages")
    }
    private static let pins: @Sendable ([String: String]) -> String = { _ in ConsolePath.path("pins") }
    private static let account: @Sendable ([String: String]) -> String = {
        ConsolePath.path("apps", $0["app"] ?? "", "accounts", $0["account"] ?? "")
    }
    private static let accounts: @Sendable ([String: String]) -> String = {
        ConsolePath.path("apps", $0["app"] ?? "", "accounts")
    }
    private static let release: @Sendable ([String: String]) -> String = {
        ConsolePath.path("releases", $0["key"] ?? "")
    }
    private static let policy: @Sendable ([String: String]) -> String = {
        ConsolePath.path("apps", $0["app"] ?? "", "policy")
    }

    static let all: [ConsoleAction] =
        appActions + releaseActions + accountActions + webhookActions + serverActions

    private static let appActions = [
        ConsoleAction(
            "addApp", title: "Add an app", subject: [], page: app,
            consequence: "The app has no release yet, so that no caller is let through."),
        ConsoleAction(
            "changePolicy", title: "Change the policy", link: "Change", subject: ["app", "name"],
            page: policy,
            consequence: "Requests are judged by the new value at once. Empty restores the default."),
        ConsoleAction(
            "beginMaintenance", title: "Begin maintenance", subject: ["app"], weight: .grave, page: app,
            consequence: "Every request of the app is answered with 503 `maintenance` until it ends."),
        ConsoleAction(
            "endMaintenance", title: "End maintenance", subject: ["app"], page: app,
            consequence: "Requests reach the backend again."),
        ConsoleAction(
            "setMessages", title: "Set the texts of a language", link: "Set texts", subject: ["app"],
            page: messages,
            consequence: "Refused callers are told these texts. They replace all in that language."),
        ConsoleAction(
            "removeMessages", title: "Remove the texts of the language", link: "Remove",
            subject: ["app", "language", "release"], page: messages,
            consequence: "Refused callers are told the texts of another language, or our own words."),
        ConsoleAction(
            "publishPins", title: "Publish a pin manifest", subject: [], page: pins,
            consequence: "Clients of its app are handed it from the next request on."
        ),
        ConsoleAction(
            "setRoute", title: "Set a route", subject: ["app"], page: app,
            consequence:
                "The rule decides what requests below its path have to prove. It replaces one of the "
                + "same path and methods."),
        ConsoleAction(
            "removeRoute", title: "Remove the rule", link: "Remove", subject: ["app", "prefix", "methods"],
            page: app,
            consequence: "The next shorter path's rule decides then."),
    ]

    private static let releaseActions = [
        ConsoleAction(
            "addRelease", title: "Add a release", subject: ["app"], outcome: .report, page: app,
            consequence: "A secret is made, unless you bring one along. It is shown once."),
        ConsoleAction(
            "changeReleasePolicy", title: "Change the release's policy", link: "Change",
            subject: ["key", "name"],
            page: release,
            consequence:
                "The value holds for this release in place of the app's. An empty value restores the app's."),
        ConsoleAction(
            "addNextKey", title: "Add a next key", subject: ["key"], outcome: .report, page: release,
            consequence: "Both keys are accepted until one is dropped. The new secret is shown once."),
        ConsoleAction(
            "promoteNextKey", title: "Promote the next key", subject: ["key"], weight: .grave, page: release,
            consequence: "Clients that still sign with the current key are refused from then on."),
        ConsoleAction(
            "removeNextKey", title: "Drop the next key", subject: ["key"], weight: .grave, page: release,
            consequence: "Clients that sign with the next key are refused from then on."),
        ConsoleAction(
            "retireRelease", title: "Retire the release", link: "Retire", subject: ["key"], weight: .grave,
            page: release,
            consequence:
                "From its stages on, callers of this version are told to update, and at last refused. This "
                + "can be undone."),
        ConsoleAction(
            "undoRetirement", title: "Undo the retirement", link: "Undo", subject: ["key"], page: release,
            consequence: "Callers of this version are accepted again."),
    ]

    private static let accountActions = [
        ConsoleAction(
            "addAccount", title: "Add an account", subject: ["app"], outcome: .report, page: accounts,
            consequence: "Without a password, a reset code lets the owner set one."),
        ConsoleAction(
            "lockAccount", title: "Lock the account", link: "Lock", subject: ["app", "account"],
            weight: .grave, page: account,
            consequence: "Its sessions end, and no sign-in succeeds until it is unlocked."),
        ConsoleAction(
            "unlockAccount", title: "Unlock the account", link: "Unlock", subject: ["app", "account"],
            page: account,
            consequence: "Its owner can sign in again."),
        ConsoleAction(
            "resetAccount", title: "Make a reset code", subject: ["app", "account"], outcome: .report,
            page: account,
            consequence:
                "Whoever has the code can set a new password. It is shown once: hand it to the owner alone."),
        ConsoleAction(
            "verifyAccount", title: "Mark the account as verified", link: "Verify",
            subject: ["app", "account"], page: account,
            consequence: "The owner counts as one who receives what is sent to the account's address."),
        ConsoleAction(
            "undoVerification", title: "Take the verification back", link: "Undo verification",
            subject: ["app", "account"], page: account,
            consequence: "The account does not count as verified until it is verified again."),
        ConsoleAction(
            "makeCode", title: "Make a code", subject: ["app", "account"], outcome: .report, page: account,
            consequence: "It replaces an earlier one of its purpose, and is shown once."),
        ConsoleAction(
            "redeemCode", title: "Redeem a code", subject: ["app", "account"], outcome: .report,
            page: account,
            consequence: "The right code is used up. A wrong one costs one of its tries."),
        ConsoleAction(
            "removeAccount", title: "Remove the account", link: "Remove", subject: ["app", "account"],
            weight: .grave,
            page: accounts,
            consequence: "Its credentials are dropped and its sessions end. This cannot be undone."),
        ConsoleAction(
            "eraseAccount", title: "Erase the person", link: "Erase", subject: ["app", "account"],
            weight: .grave,
            outcome: .report, page: accounts,
            consequence: "Everything held about this person is removed, in every file. This cannot be undone."
        ),
        ConsoleAction(
            "setUserID", title: "Set the user id", subject: ["app", "account"], page: account,
            consequence: "The backend is told this number of its own for the account. Its sessions end."),
        ConsoleAction(
            "clearUserID", title: "Clear the user id", subject: ["app", "account"], page: account,
            consequence: "The backend is told the account's name alone. Its sessions end."),
        ConsoleAction(
            "forgetDevice", title: "Forget the device", link: "Forget",
            subject: ["app", "account", "device"],
            page: account,
            consequence: "The device has no login limits of its own any longer."),
        ConsoleAction(
            "revokeSession", title: "End the session", link: "End", subject: ["app", "account", "session"],
            page: account,
            consequence: "The device has to sign in again."),
    ]

    private static let webhooks: @Sendable ([String: String]) -> String = { _ in
        ConsolePath.path("webhooks")
    }

    private static let webhookActions = [
        ConsoleAction(
            "addWebhook", title: "Add a webhook", subject: [], page: webhooks,
            consequence:
                "The endpoint is told of events from now on: names and ids, no secrets."),
        ConsoleAction(
            "removeWebhook", title: "Remove the webhook", link: "Remove", subject: ["webhook"],
            weight: .grave,
            page: webhooks, consequence: "The endpoint is told of no more events, and of none that wait."),
        ConsoleAction(
            "testWebhook", title: "Send a test", link: "Test", subject: ["webhook"], page: webhooks,
            consequence: "The endpoint is sent an event of the type webhook.test."),
        ConsoleAction(
            "retryDeliveries", title: "Retry all", subject: [], page: webhooks,
            consequence: "All deliveries that were given up are tried again."),
        ConsoleAction(
            "rotateWebhookKey", title: "Rotate the key", subject: [], page: webhooks,
            consequence:
                "The next key signs from now on. Receivers that know the current key alone refuse deliveries."
        ),
    ]

    private static let serverActions = [
        ConsoleAction(
            "reload", title: "Reload the settings", subject: [], outcome: .report,
            page: { _ in ConsolePath.path("server") },
            consequence:
                "The server reads its settings and certificates again. If any is wrong, it applies none."
        )
    ]
}
