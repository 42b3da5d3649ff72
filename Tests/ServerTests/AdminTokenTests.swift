import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

/// The administration routes open to the whole token and to nothing that resembles it.
@Suite struct AdminTokenTests {
    private func token(holding text: String) throws -> AdminToken {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("countersign-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(
            FileManager.default.createFile(
                atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
        return try AdminToken(at: path)
    }

    private func request(_ authorization: String?) -> Request {
        var draft = Draft(
            method: "GET", target: Array("/metrics".utf8), authority: "localhost", transport: .plain)
        if let authorization { draft.setField("Authorization", to: authorization) }
        return draft.request()
    }

    @Test func onlyTheWholeTokenIsAccepted() throws {
        let text = "0123456789abcdefghijklmnopqrstuv"
        let token = try token(holding: text)
        for field in ["Bearer \(text)", "bearer \(text)", "BEARER \(text)"] {
            #expect(token.isPresented(by: request(field)), "\(field)")
        }
        for length in 0..<text.count {
            #expect(!token.isPresented(by: request("Bearer \(text.prefix(length))")), "\(length) characters")
        }
        for field in [
            "Bearer \(text)w", "Bearer \(text) ", "Bearer \(text.dropFirst())", "Bearer  \(text)", text,
            "Basic \(text)", "Bearer \(text.uppercased())", "Bearer \(text),\(text)",
        ] {
            #expect(!token.isPresented(by: request(field)), "\(field)")
        }
        #expect(!token.isPresented(by: request(nil)))
    }
}
