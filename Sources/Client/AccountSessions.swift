import CountersignHandshake
import CountersignWire

/// An account's sessions, as the authority has them. Source: docs/protocol.md, "Sessions".
package struct AccountSessions: Sendable {
    private let routes: AuthenticatedRoutes

    package init(_ installation: Installation, environment: ClientEnvironment) {
        routes = AuthenticatedRoutes(installation: installation, environment: environment)
    }

    /// One session; times are whole Unix seconds.
    package struct Entry: Sendable {
        package let id: SessionID
        package let deviceClass: String
        package let deviceName: String
        package let created: Int64
        /// The last login or refresh.
        package let used: Int64
        package let isCurrent: Bool
        /// Where the device says that it stores its keys; nil if it has not said, and from servers that do
        /// not ask.
        package let keyStorage: String?
    }

    /// This session, as the authority sees it.
    package func current() async throws(ClientOperationError) -> Current {
        let answer = try await routes.send("GET", path: "/session")
        return Current(
            account: try answer.text("account"), entry: try Entry(answer, isCurrent: true),
            expires: try answer.number("expires"), idle: try answer.number("idle"))
    }

    package struct Current: Sendable {
        package let account: String
        package let entry: Entry
        package let expires: Int64
        package let idle: Int64
    }

    /// The live sessions in the authority's order. Of many sessions the authority lists the newest.
    package func list() async throws(ClientOperationError) -> [Entry] {
        var entries: [Entry] = []
        for element in try await routes.send("GET", path: "/sessions").objects("sessions") {
            entries.append(try Entry(element, isCurrent: element.says("current")))
        }
        return entries
    }

    /// Ends another session of the account.
    package func end(_ id: SessionID) async throws(ClientOperationError) {
        _ = try await routes.send("DELETE", path: "/sessions/\(id)")
    }
}

extension AccountSessions.Entry {
    fileprivate init(_ answer: ResponseFields, isCurrent: Bool) throws(ClientOperationError) {
        guard let id = SessionID(try answer.text("session")) else {
            throw answer.missing("session", expected: "a session's id")
        }
        let device = try answer.object("device")
        self.id = id
        self.isCurrent = isCurrent
        deviceClass = try device.text("class")
        guard let name = Device.Name(try device.text("name")) else {
            throw device.missing("name", expected: "a device's name")
        }
        deviceName = name.description
        keyStorage = answer.optionalText("key_storage")
        created = try answer.number("created")
        used = try answer.number("used")
    }
}

/// The authority's routes for a signed-in account. A response that neither a signature nor a pinned
/// connection proves is an error.
struct AuthenticatedRoutes: Sendable {
    let installation: Installation
    let environment: ClientEnvironment

    func send(
        _ method: String, path: String, body: JSONValue? = nil,
        as owner: SignedCalls.Owner = .currentAccount, ifLost: SignedCalls.LostAnswer = .askAgain
    ) async throws(ClientOperationError) -> ResponseFields {
        let draft = installation.draft(method, path: path, body: body)
        let result = try await SignedCalls(installation, environment: environment).send(
            draft, as: owner, ifLost: ifLost)
        if let notice = result.notice {
            throw notice.isGenuine && notice.isOfWrongCredentials ? .wrongCredentials : .refused(notice)
        }
        guard result.signer != nil || installation.connectionVouches else {
            throw .notGenuine("\(path): \(result.unsignedReason?.detail ?? "its body is still to come")")
        }
        return try ResponseFields(result.response, of: path)
    }
}
