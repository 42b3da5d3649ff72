import CountersignMemory
import CountersignTestKit
import CountersignTrust
import Testing

@testable import Countersign

/// Proves how much of a legacy request's body is in memory, which part of it is signed, and that a stream is
/// sent at most as often as it can be read.
@Suite(.timeLimit(.minutes(15))) struct LegacyStreamingTests {
    /// Counts how often it is read.
    private struct Pieces: AsyncSequence, Sendable {
        let made: Locked<Int>
        let pieces: [[UInt8]]

        func makeAsyncIterator() -> Iterator {
            made.with { $0 += 1 }
            return Iterator(left: pieces)
        }

        struct Iterator: AsyncIteratorProtocol {
            var left: [[UInt8]]
            mutating func next() async throws -> [UInt8]? { left.isEmpty ? nil : left.removeFirst() }
        }
    }

    private static let text: [[UInt8]] = [Array("{".utf8), Array("}".utf8)]

    private func signedIn(
        _ carrier: MockTransport, _ folder: TestFolder, _ scheme: LegacyScheme,
        _ change: (inout LegacyOptions) -> Void = { _ in }
    ) async throws -> LegacyClient {
        let client = try LegacyCallTests.client(carrier, folder, scheme: scheme, change)
        try await client.logIn("anna", "pass word")
        return client
    }

    @Test("a body is read as often as the scheme needs it: once, once more for its MD5, or into memory")
    func readings() async throws {
        // Source of the MD5: RFC 1321's algorithm over `{}`, by openssl.
        let rows: [(LegacyScheme, Int, String)] = [
            (.unsigned, 1, "/a"),
            (try .authV2(clientID: "k", secret: "s"), 1, "auth_version=2&auth_signature"),
            (try .authV1(key: "k", secret: "s"), 2, "body_md5=99914b932bd37a50b983c5e7c90ae93b"),
        ]
        for (scheme, readings, target) in rows {
            let folder = try TestFolder()
            let carrier = LegacyCallTests.server()
            let client = try await signedIn(carrier, folder, scheme)
            let made = Locked(0)
            let stream = ReplayableBody(.bytes(2)) { Pieces(made: made, pieces: Self.text) }
            let far = Locked<[TransferProgress]>([])
            _ = try await client.upload(APIRequest(.post, "/a"), from: .replayable(stream)) { progress in
                far.with { $0.append(progress) }
            }
            #expect(made.with { $0 } == readings)
            #expect(carrier.seen.last?.body == Array("{}".utf8))
            #expect(carrier.seen.last?.target.contains(target) == true, "\(carrier.seen.last?.target ?? "")")
            #expect(far.with { $0.last?.sent } == 2)
            withExtendedLifetime(folder) {}
        }
    }

    @Test("a form is signed in memory, whatever the scheme, and no more of it than the limit")
    func forms() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = LegacyCallTests.server()
        let form = try #require(LegacyClientTests.form)
        let client = try await signedIn(carrier, folder, form) { $0.largestAnswer = 100 }
        var request = APIRequest(.post, "/a")
        request.set("Content-Type", "application/x-www-form-urlencoded")
        let path = try folder.write("form", Array("z=1".utf8))
        _ = try await client.upload(request, from: .file(path: path))
        let sent = String(decoding: try #require(carrier.seen.last?.body), as: UTF8.self)
        #expect(sent.hasPrefix("z=1&userId=7&token=t-one&") && sent.contains("&sign="))
        let long = try folder.write("long", [UInt8](repeating: 0x61, count: 101))
        await #expect { try await client.upload(request, from: .file(path: long)) } throws: { error in
            guard case CountersignError.misuse(let detail) = error else { return false }
            return detail.contains("100 bytes")
        }
    }

    @Test("what is gone once read goes where nothing is signed of it, once, and not on a token that ran out")
    func once() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = LegacyCallTests.server(isOut: true)
        let client = try await signedIn(carrier, folder, .unsigned)
        func body() -> APIRequest.Body {
            .once(OnceBody(.bytes(2), pieces: Pieces(made: Locked(0), pieces: Self.text)), sha256: [])
        }
        await #expect { try await client.upload(APIRequest(.post, "/a"), from: body()) } throws: { error in
            if case CountersignError.bodyUsedUp = error { true } else { false }
        }
        #expect(carrier.seen.filter { $0.target == "/a" }.count == 1, "no second copy")
        _ = try await client.upload(APIRequest(.post, "/a"), from: body())
        #expect(carrier.seen.last?.body == Array("{}".utf8))

        let later = LegacyCallTests.server(isOut: true)
        let (other, clock) = (try TestFolder(), TestClock())
        let careful = try await signedIn(later, other, .unsigned) { $0.clock = clock.device }
        clock.pass(7_201)
        _ = try await careful.upload(APIRequest(.post, "/a"), from: body())
        #expect(later.seen.filter { $0.target == "/a" }.count == 1, "renewed before")
        withExtendedLifetime(other) {}
    }

    @Test("a long answer is handed out as it comes; a refusal is not, whatever its status")
    func downloads() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let long = [UInt8](repeating: 0x61, count: 200_000)
        let carrier = MockTransport { seen in
            switch seen.target {
            case "/login/login.php": return MockResponse(text: LegacyClientTests.login)
            case "/login/token.php": return MockResponse(text: LegacyCallTests.renewed)
            case "/missing": return MockResponse(404, text: "no")
            default:
                guard seen.value(of: "authorization") == "Bearer t-two" else {
                    return MockResponse(text: LegacyCallTests.ranOut)
                }
                var answer = MockResponse(200, fields: [HeaderField("Content-Length", value: "200000")])
                answer.pieces = [Array(long[..<100_000]), Array(long[100_000...])]
                return answer
            }
        }
        let client = try await signedIn(carrier, folder, .unsigned)
        let answer = try await client.download(for: APIRequest("/film"))
        #expect(answer.response.status == 200 && answer.response.length == .bytes(200_000))
        var pieces: [Int] = []
        for try await piece in answer.body { pieces.append(piece.count) }
        #expect(pieces == [100_000, 100_000], "renewed on the way, and not put together")
        let path = "\(folder.path)/film"
        try await client.download(for: APIRequest("/film"), to: path)
        #expect(folder.contents("film")?.count == 4096)
        await #expect {
            try await client.download(for: APIRequest("/missing"), to: "\(folder.path)/none")
        } throws: {
            error in
            if case CountersignError.status(_, let body) = error { body == Array("no".utf8) } else { false }
        }
        #expect(!folder.names.contains("none"))
        await #expect { try await client.download(for: APIRequest("/film"), to: path + "/x") } throws: {
            error in
            if case CountersignError.machine = error { true } else { false }
        }
    }

    @Test("an answer that begins like a refusal and is none comes whole, in its pieces or in one")
    func json() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let long = "  {" + String(repeating: " ", count: 70_000) + "}"
        let carrier = MockTransport { seen in
            seen.target == "/login/login.php"
                ? MockResponse(text: LegacyClientTests.login)
                : MockResponse(text: seen.target == "/long" ? long : "{}")
        }
        let client = try await signedIn(carrier, folder, .unsigned)
        #expect(
            try await client.download(for: APIRequest("/short")).body.collect(upTo: 10) == Array("{}".utf8))
        let answer = try await client.download(for: APIRequest("/long"))
        #expect(try await answer.body.collect(upTo: 100_000) == Array(long.utf8))
    }
}
