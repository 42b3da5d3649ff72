// Accounts, passwords and sessions.
import Countersign

func logIn(_ client: CountersignClient, _ name: String, _ password: String) async throws -> String? {
    do {
        let account: CountersignAccount = try await client.logIn(name, password, by: .opaque)
        print(account.name, account.session)
        return nil
    } catch {
        switch error {
        case .wrongCredentials: return "The name or the password is wrong."
        case .refused(let refusal) where refusal.retryAfter != nil:
            return "Try again in \(refusal.retryAfter ?? 0) s."
        case .refused(let refusal): return refusal.title
        case .unusableName(let why), .unusablePassword(let why): return why
        case _ where error.isOffline: return "You are offline."
        case _ where error.isUnreachable: return "The server cannot be reached."
        case _ where error.isTimeout: return "The server does not answer."
        default: return error.description
        }
    }
}

/// Sends the password, for accounts that have not moved from an older system yet.
func logInAsBefore(_ client: CountersignClient, _ name: String, _ password: String) async throws {
    try await client.logIn(name, password, by: CountersignClient.LogInMethod.passwordIsSent)
}

func passwords(_ client: CountersignClient, _ code: String) async throws {
    try await client.changePassword(from: "correct horse battery staple", to: "another one")
    try await client.resetPassword("anna", to: "a third one", code: code)
}

/// Lists the account's sessions and ends those on other devices.
func endOthers(_ client: CountersignClient) async throws {
    for session: CountersignClient.Session in try await client.sessions() where !session.isCurrent {
        print(session.deviceKind, session.deviceName, session.created, session.used)
        try await client.endSession(session.id)
    }
    let own = try await client.confirmSession()
    print(own.isCurrent, own.keyStorage ?? "unknown")
}

/// When off, the session continues until the process ends and nothing of it stays stored.
func staySignedIn(_ client: CountersignClient, _ isOn: Bool) async throws {
    try await client.remember(isOn ? .session : .nothing)
}

func logOut(_ client: CountersignClient) async throws {
    // Signs out on this device in any case, also offline.
    let result: CountersignClient.LogOutResult = try await client.logOut()
    switch result {
    case .serverKnows: print("signed out")
    case .serverIsToldLater: print("signed out; the server is told when it can be reached")
    }
}

/// Removes the session from the device, for a server that no longer exists.
func forget(_ client: CountersignClient) async throws { try await client.forgetSession() }

/// Allows requests again after the server refused this version of the app.
func later(_ client: CountersignClient) {
    if case .updateRequired = client.state { client.continueDespiteUpdate() }
}
