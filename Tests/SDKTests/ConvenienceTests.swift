import CountersignTransport
import CountersignTrust
import CountersignWire
import Foundation
import Testing
import Waiting

@testable import Countersign

/// Conveniences beside requests: forms with files, errors of the backend as values, a log, a state to
/// observe, the last name.
@Suite(.timeLimit(.minutes(15))) struct ConvenienceTests {
    private struct Wrong: Error, Decodable, Equatable {
        var message: String
    }

    @Test func aFormIsWhatAReaderOfFormsReads() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let path = "\(world.folder.path)/a \"b\".bin"
        let content = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
        try content.write(to: URL(fileURLWithPath: path))
        var form = MultipartForm()
        form.add("title", "Crème\r\n\"brûlée\"")
        try form.add("photo\r\nX: y", file: path, type: "image/jpeg")
        try form.add("raw", bytes: [0, 13, 10, 45, 45], fileName: "r")
        #expect(throws: CountersignError.self) {
            try form.add("x", bytes: [], fileName: "r", type: "a\r\nb: c")
        }
        let request = try APIRequest.multipart(.post, "/albums", form)
        _ = try await client.data(for: request)
        let sent = try #require(await world.backend.copies(of: "/albums").first)
        let type = String(
            decoding: sent.fields.first { $0.name == "Content-Type" }?.value ?? [], as: UTF8.self)
        let boundary = try #require(type.split(separator: "boundary=").last)
        guard case .replayable(let body) = sent.body else {
            Issue.record("\(sent.body)")
            return
        }
        let collected = Locked<[UInt8]>([])
        try await body.write { piece in collected.with { $0 += piece } }
        let bytes = collected.with { $0 }
        guard case .bytes(bytes.count) = body.length else {
            Issue.record("\(body.length), not \(bytes.count)")
            return
        }
        var expected = Array("--\(boundary)\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\n".utf8)
        expected += Array("Crème\r\n\"brûlée\"\r\n--\(boundary)\r\nContent-Disposition: form-data; ".utf8)
        expected += Array(
            "name=\"photo%0D%0AX: y\"; filename=\"a %22b%22.bin\"\r\nContent-Type: image/jpeg\r\n\r\n".utf8)
        expected +=
            Array(content) + Array("\r\n--\(boundary)\r\nContent-Disposition: form-data; name=\"raw\"; ".utf8)
        expected += Array("filename=\"r\"\r\nContent-Type: application/octet-stream\r\n\r\n\0\r\n--\r\n".utf8)
        expected += Array("--\(boundary)--\r\n".utf8)
        #expect(bytes == expected)
        var small = MultipartForm()
        small.add("a", "1")
        if case .bytes = try small.body() {} else { Issue.record("a form of text is not in memory") }
        #expect(small.boundary != MultipartForm().boundary)
    }

    @Test func aFileThatIsNotThereIsNamed() throws {
        var form = MultipartForm()
        try form.add("photo", file: "/does/not/exist")
        #expect { try form.body() } throws: { "\($0)".contains("/does/not/exist") }
    }

    @Test func aBackendsErrorIsAValue() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.answer(422, [], Array(#"{"message":"no stock"}"#.utf8)), at: "/orders")
        await #expect(throws: Wrong(message: "no stock")) {
            let _: Int = try await client.value(for: APIRequest("/orders"), orThrow: Wrong.self)
        }
        await world.backend.plan(.answer(500, [], Array("oops".utf8)), at: "/orders")
        await #expect {
            let _: Int = try await client.value(for: APIRequest("/orders"), orThrow: Wrong.self)
        } throws: { error in
            guard case CountersignError.status(let response, _) = error else { return false }
            return response.status == 500 && (error as? CountersignError)?.body(as: Wrong.self) == nil
        }
        let problem = Array(#"{"type":"/p","title":"Gone","status":410,"detail":"d","instance":"/i"}"#.utf8)
        await world.backend.plan(.answer(410, [], problem), at: "/orders")
        await #expect {
            let _: Int = try await client.value(for: APIRequest("/orders"))
        } throws: { error in
            (error as? CountersignError)?.body(as: ProblemDetails.self)?.title == "Gone"
        }
    }

    @Test func aLogTellsWhatHappensAndNoSecret() async throws {
        let lines = Locked<[CountersignLog.Entry]>([])
        let world = try await World { options in
            options.log = .handler(from: .debug) { entry in lines.with { $0.append(entry) } }
        }
        let client = try await world.signedIn()
        await world.backend.plan(.fail(TransportError(.offline, fate: .notSent)), at: "/orders")
        _ = try? await client.data(for: APIRequest("/orders?card=4111"))
        _ = try await client.data(for: APIRequest(.post, "/pin", body: .bytes(Array("correct horse".utf8))))
        await until("the line of the log") { lines.with { $0.contains { $0.message.contains("/pin: 200") } } }
        let text = lines.with { $0.map(\.description).joined(separator: "\n") }
        #expect(text.contains("warning: #") && text.contains("GET api.example.com/orders: failed (offline)"))
        for secret in ["4111", "correct horse", "alice", "s_"] {
            #expect(!text.contains(secret), "\(secret)")
        }
        let quiet = Locked(0)
        let other = try await World { options in
            options.log = .handler(from: .error) { _ in quiet.with { $0 += 1 } }
        }
        _ = try await other.signedIn().data(for: APIRequest("/x"))
        #expect(quiet.with { $0 } == 0)
        #expect(CountersignLog.Level.allCases == CountersignLog.Level.allCases.sorted())
    }

    @available(iOS 17, macOS 14, *)
    @MainActor @Test func anObservedStateFollows() async throws {
        let world = try await World()
        let client = try world.client()
        let observed = ObservedState(of: client)
        #expect(observed.account == nil)
        try await client.signUp("alice", "correct horse")
        try await client.logIn("alice", "correct horse")
        await until("the account's name") { observed.account?.name == "alice" }
    }

    @available(iOS 17, macOS 14, *)
    @MainActor @Test func anObservedStateDoesNotKeepItsClient() async throws {
        let world = try await World()
        var client: CountersignClient? = try world.client()
        weak let observedClient = client
        let observed = try ObservedState(of: #require(client))
        client = nil
        await until("the client's end") { observedClient == nil }
        #expect(observedClient == nil && observed.account == nil)
    }

    @Test func theLastNameIsKeptAndNeverThePassword() async throws {
        let world = try await World()
        #expect(try await world.client().lastAccountName() == nil)
        let client = try await world.signedIn("alice")
        try await client.forgetLastAccountName()
        #expect(try await client.lastAccountName() == "alice")
        try await client.logOut()
        #expect(try await world.client().lastAccountName() == "alice")
        try await client.forgetLastAccountName()
        #expect(try await client.lastAccountName() == nil)
        #expect(try await world.client().lastAccountName() == nil)
    }

    @Test func whereNothingIsRememberedTheLastNameIsNot() async throws {
        let world = try await World { $0.remembers = .nothing }
        let client = try await world.signedIn("alice")
        try await client.logOut()
        #expect(try await world.client().lastAccountName() == nil)
    }
}
