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

/// For accounts that are still on their way from an older system.
func logInAsBefore(_ client: CountersignClient, _ name: String, _ password: String) async throws {
    try await client.logIn(name, password, by: CountersignClient.LogInMethod.passwordIsSent)
}

func passwords(_ client: CountersignClient, _ code: String) async throws {
    try await client.changePassword(from: "correct horse battery staple", to: "another one")
    try await client.resetPassword("anna", to: "a third one", code: code)
}

/// The devices on which somebody is signed in, and ending one of them.
func endOthers(_ client: CountersignClient) async throws {
    for session: CountersignClient.Session in try await client.sessions() where !session.isCurrent {
        print(session.deviceKind, session.deviceName, session.created, session.used)
        try await client.endSession(session.id)
    }
    let own = try await client.confirmSession()
    print(own.isCurrent, own.keyStorage ?? "unknown")
}

/// Off, nothing outlives the process; the session goes on.
func staySignedIn(_ client: CountersignClient, _ isOn: Bool) async throws {
    try await client.remember(isOn ? .session : .nothing)
}

func logOut(_ client: CountersignClient) async throws {
    // Signed out here in any case, offline too.
    let result: CountersignClient.LogOutResult = try await client.logOut()
    switch result {
    case .serverKnows: print("signed out")
    case .serverIsToldLater: print("signed out; the server is told when it can be reached")
    }
}

/// For a server that is gone for good.
func forget(_ client: CountersignClient) async throws { try await client.forgetSession() }

/// Goes on showing what it may still read.
func later(_ client: CountersignClient) {
    if case .updateRequired = client.state { client.continueDespiteUpdate() }
}
