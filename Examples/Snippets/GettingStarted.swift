// The shortest whole example: a client, somebody who signs in, a request.
import Countersign
import Foundation

/// One for each server, for the whole app.
func makeClient() throws -> CountersignClient {
    let key = try ReleaseKey(
        id: "r_1a2b3c", secret: "VGhpcnR5LXR3byBieXRlcyBvZiBhIHJlbGVhc2Uga2V5IQ",
        authorityKey: "TWluZSBpcyBhIHB1YmxpYyBrZXkgb2YgMzIgYnl0ZXM",
        nextAuthorityKey: "VGhlIHNlcnZlciByb3RhdGVzIHRvIHRoaXMga2V5Li4", app: "notes")
    let client = try CountersignClient(
        release: key, baseURL: "https://api.example.com", vault: .platform,
        trust: [
            .host(
                "**.example.com", pins: ["sha256/MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="],
                backups: ["sha256/ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="])
        ])
    return client
}

/// In a debug build, once: whether key, secret and authority key are this server's.
func check(_ client: CountersignClient) async {
    do {
        let seconds = try await client.checkSetup()
        print("the clock is \(seconds) s behind")
    } catch {
        print(error)
    }
}

func useIt(_ client: CountersignClient) async throws {
    await client.resume()
    try await client.signUp("anna", "correct horse battery staple")
    try await client.logIn("anna", "correct horse battery staple")
    let (data, response) = try await client.data(for: APIRequest("/notes"))
    print(response.status, data.count)
}

/// At launch: signs in silently who was signed in last time.
func launch(_ client: CountersignClient, _ screen: Screen) async {
    await client.resume()
    for await state in client.states {
        switch state {
        case .signedOut(.nobody): screen.showLogin(nil)
        case .signedOut(.ended(let end)): screen.showLogin(sentence(end))
        case .active(let account): screen.showHome(of: account.name)
        case .locked: screen.showLock()
        // Nothing is known of the session: wait, and do not send anybody to the login page.
        case .unavailable: screen.showWaiting()
        case .updateRequired(let url): screen.showUpdate(url)
        }
    }
}

/// What a person reads on the login page, after the authority has ended his session.
func sentence(_ end: SessionEnd) -> String {
    switch end.how {
    case .expired: "You were away for long."
    case .replaced(let kind): "You signed in on another \(kind ?? "device")."
    case .signedOut: "You signed out."
    case .revoked: "Your session was ended by an administrator."
    case .reused: "Somebody may have a copy of your session."
    case .passwordChanged: "Your password was changed."
    case .disabled: "Your account is locked."
    case .restored, .deviceKeyLost: "Please sign in again."
    case .other(let word): word
    }
}

protocol Screen: Sendable {
    func showLogin(_ reason: String?)
    func showHome(of name: String)
    func showLock()
    func showWaiting()
    func showUpdate(_ url: String?)
}
