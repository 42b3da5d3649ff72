import CountersignAuthority
import CountersignWire
import Testing

/// Links to the console and its sessions stay until their places are needed: a clock that was wrong for a
/// moment signs no operator out.
@Suite struct ConsoleSessionsTests {
    private static let (start, day, most): (Int64, Int64, Int) = (1_800_000_000, 86_400, 64)
    private let folder = TemporaryFolder()

    private func link(at now: Int64, to deployment: Deployment) throws -> [UInt8] {
        try Array(
            deployment.addConsoleLink(for: "op", scopes: [.appsRead], lasting: 3_600, at: now).utf8)
    }

    private func count(of kind: APIToken.Kind, in deployment: Deployment) throws -> Int {
        try APITokenFile(deployment.folder).tokens().count { $0.kind == kind }
    }

    @Test func linksStayWhileThereIsRoom() throws {
        let deployment = try deployment(folder.data)
        let early = try link(at: Self.start, to: deployment)
        let ahead = Self.start + 91 * Self.day
        for _ in 1..<Self.most { _ = try link(at: ahead, to: deployment) }
        #expect(try deployment.redeemConsoleLink(early.span, at: Self.start) != nil)
        _ = try link(at: ahead, to: deployment)
        #expect(throws: OperationalError.self) { try link(at: ahead, to: deployment) }
        _ = try link(at: ahead + APIToken.linkSeconds, to: deployment)
        #expect(try count(of: .link, in: deployment) == 1, "those that have expired make room")
        #expect(try count(of: .console, in: deployment) == 1)
    }

    @Test func sessionsStayWhileThereIsRoom() throws {
        let deployment = try deployment(folder.data)
        func visit(at now: Int64) throws -> Bool {
            try deployment.redeemConsoleLink(link(at: now, to: deployment).span, at: now) != nil
        }
        #expect(try visit(at: Self.start))
        let ahead = Self.start + 91 * Self.day
        for _ in 1..<Self.most { #expect(try visit(at: ahead)) }
        #expect(try count(of: .console, in: deployment) == Self.most, "the first one is there")
        #expect(try visit(at: ahead))
        #expect(try count(of: .console, in: deployment) == Self.most, "it made room")
        #expect(throws: OperationalError.self) { try visit(at: ahead) }
        #expect(try visit(at: ahead + 3_600))
        #expect(try count(of: .console, in: deployment) == 1)
    }
}
