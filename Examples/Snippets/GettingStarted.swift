// The shortest complete example: creates a client, signs a user in, and sends a request.
import Countersign
import Foundation

/// Creates one client per server for the whole app.
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

/// For debug builds: checks that key, secret and authority key belong to this server.
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

/// At launch: signs the last user in silently.
func launch(_ client: CountersignClient, _ screen: Screen) async {
    await client.resume()
    for await state in client.states {
        switch state {
        case .signedOut(.nobody): screen.showLogin(nil)
        case .signedOut(.ended(let end)): screen.showLogin(sentence(end))
        case .active(let account): screen.showHome(of: account.name)
        case .locked: screen.showLock()
        // The session cannot be read yet: wait, and do not show the login page.
        case .unavailable: screen.showWaiting()
        case .updateRequired(let url): screen.showUpdate(url)
        }
    }
}

/// The reason that the login page shows after the authority has ended the session.
func sentence(_ end: SessionEnd) -> String {
    switch end.how {
    case .expired: "You were away for long."
    case .replaced(let kind): "You signed in on another \(kind ?? "device")."
    case .signedOut: "You signed out."
    case .revoked: "Your session was ended by an administrator."
    case .reused: "A copy of your session may exist elsewhere."
    case .passwordChanged: "Your password was changed."
    case .disabled: "Your account is locked."
    case .restored, .deviceKeyLost: "Please sign in again."
    case .never: "Please sign in."
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
