import CountersignAuthority
import CountersignWire
import Testing

/// Links to the console and its sessions stay until their places are needed: a clock that was wrong for a
/// moment signs no operator out.
@Suite struct ConsoleSessionsTests {
    private static let start: Int64 = 1_800_000_000
    private static let ahead = start + 91 * 86_400
    private static let most = 64
    private let folder = TemporaryFolder()

    private func link(at now: Int64, to deployment: Deployment) throws -> [UInt8] {
        let text = try deployment.addConsoleLink(for: "op", scopes: [.appsRead], lasting: 3_600, at: now)
        return Array(text.utf8)
    }

    private func visit(at now: Int64, to deployment: Deployment) throws -> Bool {
        let link = try link(at: now, to: deployment)
        return try deployment.redeemConsoleLink(link.span, at: now) != nil
    }

    private func count(of kind: APIToken.Kind, in deployment: Deployment) throws -> Int {
        try APITokenFile(deployment.folder).tokens().count { $0.kind == kind }
    }

    @Test func linksStayWhileThereIsRoom() throws {
        let deployment = try deployment(folder.data)
        let early = try link(at: Self.start, to: deployment)
        for _ in 1..<Self.most { _ = try link(at: Self.ahead, to: deployment) }
        #expect(try deployment.redeemConsoleLink(early.span, at: Self.start) != nil)
        _ = try link(at: Self.ahead, to: deployment)
        #expect(throws: OperationalError.self) { try link(at: Self.ahead, to: deployment) }
        _ = try link(at: Self.ahead + APIToken.linkSeconds, to: deployment)
        #expect(try count(of: .link, in: deployment) == 1, "those that have expired make room")
        #expect(try count(of: .console, in: deployment) == 1)
    }

    @Test func sessionsStayWhileThereIsRoom() throws {
        let deployment = try deployment(folder.data)
        #expect(try visit(at: Self.start, to: deployment))
        for _ in 1..<Self.most { #expect(try visit(at: Self.ahead, to: deployment)) }
        #expect(try count(of: .console, in: deployment) == Self.most, "the first one is there")
        #expect(try visit(at: Self.ahead, to: deployment))
        #expect(try count(of: .console, in: deployment) == Self.most, "it made room")
        #expect(throws: OperationalError.self) { try visit(at: Self.ahead, to: deployment) }
        #expect(try visit(at: Self.ahead + 3_600, to: deployment))
        #expect(try count(of: .console, in: deployment) == 1)
    }
}
