import CountersignHandshake
import CountersignWire

/// An account's sessions, as the authority has them. Source: docs/protocol.md, "Sessions".
package struct AccountSessions: Sendable {
    private let routes: OwnRoutes

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        routes = OwnRoutes(installation: installation, surroundings: surroundings)
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
        /// Where its device says that it keeps its keys; nil where it has not said, and from servers that do
        /// not ask.
        package let keyStorage: String?
    }

    /// This session, as the authority sees it.
    nonisolated(nonsending) package func current() async throws(ClientProblem) -> Current {
        let answer = try await routes.ask("GET", "/session")
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

    /// Those that live, in the authority's order: of many it tells the newest.
    nonisolated(nonsending) package func list() async throws(ClientProblem) -> [Entry] {
        var entries: [Entry] = []
        for element in try await routes.ask("GET", "/sessions").objects("sessions") {
            entries.append(try Entry(element, isCurrent: element.says("current")))
        }
        return entries
    }

    /// Ends another one of the account's.
    nonisolated(nonsending) package func end(_ id: SessionID) async throws(ClientProblem) {
        _ = try await routes.ask("DELETE", "/sessions/\(id)")
    }
}

extension AccountSessions.Entry {
    fileprivate init(_ answer: AnswerBody, isCurrent: Bool) throws(ClientProblem) {
        guard let id = SessionID(try answer.text("session")) else { throw answer.missing("session", "a session's id") }
        let device = try answer.object("device")
        self.id = id
        self.isCurrent = isCurrent
        deviceClass = try device.text("class")
        guard let name = Device.Name(try device.text("name")) else { throw device.missing("name", "a device's name") }
        deviceName = name.description
        keyStorage = answer.optionalText("key_storage")
        created = try answer.number("created")
        used = try answer.number("used")
    }
}
