import ClientFakes
import CountersignSeal
import CountersignTestServer
import CountersignTrust
import CountersignWire
import Testing
import Waiting

@testable import Countersign

/// Bodies that are not in memory, over the transport that apps get.
@Suite(.timeLimit(.minutes(15))) struct UploadTests {
    /// What a server was sent.
    private struct Received: Sendable {
        var heads: [String] = []
        var bodies: [[UInt8]] = []
    }

    private static func server(_ received: Locked<Received>) throws -> TestServer {
        try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                let length = head.split(separator: "\r\n").first {
                    $0.lowercased().hasPrefix("content-length:")
                }
                .flatMap { Int($0.split(separator: " ").last ?? "") }
                let body = connection.readBody(length ?? 0)
                received.with { received in
                    received.heads.append(head)
                    received.bodies.append(body)
                }
                connection.answer("200 OK", body: "taken")
            }
        }
    }

    private static let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private static var digest: [UInt8] {
        let digest = SHA256.digest(body.span)
        return digest.indices.map { digest[$0] }
    }

    private static var field: String {
        let digest = digest
        return "Content-Digest: sha-256=:\(Base64.encode(digest.span, as: .standard)):"
    }

    private static var pieces: [[UInt8]] {
        stride(from: 0, to: body.count, by: 70_000).map { Array(body[$0..<min($0 + 70_000, body.count)]) }
    }

    /// A sequence from what is there.
    private struct Pieces: AsyncSequence, Sendable {
        typealias Element = [UInt8]
        let pieces: [[UInt8]]

        func makeAsyncIterator() -> AsyncStream<[UInt8]>.Iterator {
            let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
            for piece in pieces { continuation.yield(piece) }
            continuation.finish()
            return stream.makeAsyncIterator()
        }
    }

    @Test(arguments: ["bytes", "file", "replayable", "once"])
    func everyKindArrivesUnderItsDigest(_ kind: String) async throws {
        let received = Locked(Received())
        let server = try UploadTests.server(received)
        defer { server.stop() }
        let folder = try TestFolder()
        let client = try server.client(folder)
        let path = try folder.write("upload", UploadTests.body)
        let bodies: [String: APIRequest.Body] = [
            "bytes": .bytes(UploadTests.body), "file": .file(path: path),
            "replayable": .replayable(
                ReplayableBody(.bytes(UploadTests.body.count)) { Pieces(pieces: UploadTests.pieces) }),
            "once": .once(
                OnceBody(.bytes(UploadTests.body.count), pieces: Pieces(pieces: UploadTests.pieces)),
                sha256: UploadTests.digest
            ),
        ]
        let sent = Locked<Int64>(0)
        let request = APIRequest(.post, "/upload").byTheApp()
        let (data, _) = try await client.upload(request, from: try #require(bodies[kind])) { progress in
            sent.with { $0 = progress.sent }
        }
        #expect(String(decoding: data, as: UTF8.self) == "taken")
        #expect(received.with { $0.bodies } == [UploadTests.body])
        #expect(
            received.with {
                $0.heads[0].contains(UploadTests.field) && $0.heads[0].contains("\"content-digest\"")
            })
        await until("the whole body's progress") { sent.with { $0 } == Int64(UploadTests.body.count) }
    }

    @Test func whatIsSentOnceIsSentOnce() async throws {
        let received = Locked(Received())
        let server = try UploadTests.server(received)
        defer { server.stop() }
        let client = try server.client(TestFolder())
        let stream = OnceBody(.bytes(UploadTests.body.count), pieces: Pieces(pieces: UploadTests.pieces))
        let request = APIRequest(.post, "/upload", body: .once(stream, sha256: UploadTests.digest)).byTheApp()
        #expect(!stream.isUsedUp)
        _ = try await client.data(for: request)
        #expect(stream.isUsedUp)
        await #expect { try await client.data(for: request) } throws: { error in
            if case CountersignError.bodyUsedUp = error { true } else { false }
        }
        #expect(received.with { $0.bodies.count } == 1)
    }

    @Test func aBodyThatIsNoneIsNotSent() async throws {
        let received = Locked(Received())
        let server = try UploadTests.server(received)
        defer { server.stop() }
        let client = try server.client(TestFolder())
        let bodies: [APIRequest.Body] = [
            .file(path: "/nowhere/at/all"), .file(path: "/tmp"),
            .replayable(ReplayableBody(.bytes(7)) { Pieces(pieces: [[1]]) }),
            .once(OnceBody(.bytes(1), pieces: Pieces(pieces: [[1]])), sha256: [1]),
            .once(
                OnceBody(.unknown, pieces: Pieces(pieces: [[1]])), sha256: [UInt8](repeating: 0, count: 32)),
        ]
        for body in bodies {
            await #expect {
                try await client.upload(APIRequest(.post, "/upload").byTheApp(), from: body)
            } throws: {
                error in
                if case CountersignError.misuse = error { true } else { false }
            }
        }
        #expect(server.tally.received == 0)
    }

    @Test func whatWasUsedUpUnderATokenThatRanOutIsSaid() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.answer(200), at: "/upload")
        let stream = OnceBody(.bytes(1), pieces: Pieces(pieces: [[1]]))
        let digest = SHA256.digest([1].span)
        // Known to have run out: renewed before a byte of it is taken.
        await world.pass(FakeSession.lifetime)
        let request = APIRequest(
            .post, "/upload", body: .once(stream, sha256: digest.indices.map { digest[$0] }))
        #expect(try await client.data(for: request).1.status == 200)
        #expect(await world.authority.refreshes == 1)
        #expect(await world.backend.copies(of: "/upload").count == 1)
    }
}
