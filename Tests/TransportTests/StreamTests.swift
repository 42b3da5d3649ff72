import CountersignMemory
import CountersignTestServer
import CountersignTransport
import CountersignTrust
import Testing
import Waiting

/// Bodies that are larger than what is kept of them.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct StreamTests {
    private static let length = 100_000_000
    /// Far under a body, far over what is kept and what the kernel's buffers take.
    private static let bound = 40_000_000
    /// The value of `count` that has not changed while the transport's thread served fifty other requests.
    private func settled(
        _ transport: HTTPTransport, _ server: TestServer, _ count: () -> Int
    ) async throws -> Int {
        var last = -1
        while case let now = count(), now != last {
            last = now
            for _ in 0..<50 {
                let other = OutgoingRequest("GET", origin: try server.plainOrigin, target: "/other")
                #expect(try await outcome(transport, other).get() == 200)
            }
        }
        return last
    }

    /// Answers the requests of ``settled(_:_:_:)``, and no others.
    private static func answer(_ head: String, on connection: TestConnection) -> Bool {
        guard head.hasPrefix("GET /other ") else { return false }
        connection.answer()
        return true
    }

    @Test func aDownloadWaitsForItsReaderAndKeepsLittle() async throws {
        let written = Locked(0)
        let server = try TestServer(.plain) { connection in
            while true {
                guard let head = connection.readHead() else { return }
                if !StreamTests.answer(head, on: connection) { break }
            }
            connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: \(StreamTests.length)\r\n\r\n".utf8))
            let piece = [UInt8](repeating: 0x61, count: 100_000)
            for _ in 0..<(StreamTests.length / piece.count) {
                guard connection.write(piece) else { return }
                written.with { $0 += piece.count }
            }
        }
        defer { server.stop() }
        let seen = Locked(TransferProgress())
        let transport = try HTTPTransport(trust: .system)
        let response = try await transport.send(
            OutgoingRequest("GET", origin: try server.plainOrigin, target: "/")
        ) { progress in
            seen.with { $0 = progress }
        }
        // The client does not read, so the server stalls long before the end.
        let last = try await settled(transport, server) { written.with { $0 } }
        #expect(last < StreamTests.bound)
        // What has left the server and not reached the reader lies in the kernel's buffers and the client's.
        var (count, most) = (0, 0)
        for try await piece in response.body {
            most = max(most, written.with { $0 } - count)
            count += piece.count
        }
        #expect(count == StreamTests.length)
        #expect(most < StreamTests.bound)
        #expect(seen.with { $0.received } == Int64(StreamTests.length))
        #expect(seen.with { $0.toReceive } == .bytes(Int64(StreamTests.length)))
    }

    /// Pieces one after the other, and how many were asked for.
    private struct Pieces: AsyncSequence, Sendable {
        typealias Element = [UInt8]
        var count: Int
        var size = 100_000
        let made = Locked(0)

        struct Iterator: AsyncIteratorProtocol {
            var left: Int
            let size: Int
            let made: Locked<Int>

            mutating func next() async -> [UInt8]? {
                guard left > 0 else { return nil }
                left -= 1
                made.with { $0 += 1 }
                return [UInt8](repeating: 0x62, count: size)
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(left: count, size: size, made: made) }
    }

    private func sink(_ length: Int, wait: @escaping @Sendable () -> Void = {}) throws -> TestServer {
        try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                if StreamTests.answer(head, on: connection) { continue }
                wait()
                var count = 0
                while count < length, let part = connection.read() { count += part.count }
                connection.answer("200 OK", body: "\(count)")
            }
        }
    }

    @Test func anUploadWaitsForItsServer() async throws {
        let mayRead = Locked(false)
        let server = try sink(StreamTests.length) {
            blockUntil("the test lets the server read") { mayRead.with { $0 } }
        }
        defer { server.stop() }
        let pieces = Pieces(count: StreamTests.length / 100_000)
        let body = RequestBody.replayable(ReplayableBody(.bytes(StreamTests.length)) { pieces })
        let request = OutgoingRequest("POST", origin: try server.plainOrigin, target: "/", body: body)
        let seen = Locked(TransferProgress())
        let transport = try HTTPTransport(trust: .system)
        let task = Task {
            let response = try await transport.send(request) { progress in seen.with { $0 = progress } }
            return try await response.body.collect(upTo: 100)
        }
        await until("the first piece") { pieces.made.with { $0 } > 0 }
        let last = try await settled(transport, server) { pieces.made.with { $0 } }
        #expect(last * pieces.size < StreamTests.bound)
        mayRead.with { $0 = true }
        #expect(try await task.value == Array("\(StreamTests.length)".utf8))
        #expect(seen.with { $0.sent } == Int64(StreamTests.length))
    }

    @Test func aBodyOfUnknownLengthGoesInChunks() async throws {
        let got = Locked("")
        let server = try TestServer(.plain) { connection in
            guard var text = connection.readHead() else { return }
            while !text.hasSuffix("0\r\n\r\n"), let part = connection.read() {
                text += String(decoding: part, as: UTF8.self)
            }
            got.with { [text] in $0 = text }
            connection.answer()
        }
        defer { server.stop() }
        let body = RequestBody.replayable(ReplayableBody(.unknown) { Pieces(count: 1, size: 3) })
        let transport = try HTTPTransport(trust: .system)
        let result = await outcome(
            transport, OutgoingRequest("POST", origin: try server.plainOrigin, target: "/", body: body))
        #expect(try result.get() == 200)
        #expect(
            got.with { $0 }.contains("Transfer-Encoding: chunked\r\n")
                && got.with { $0 }.hasSuffix("\r\n3\r\nbbb\r\n0\r\n\r\n"))
    }

    @Test func aReplayableBodyGoesTwiceAndAOnceBodyOnce() async throws {
        let server = try sink(300)
        defer { server.stop() }
        let transport = try HTTPTransport(trust: .system)
        let replayable = RequestBody.replayable(ReplayableBody(.bytes(300)) { Pieces(count: 3, size: 100) })
        for _ in 0..<2 {
            let request = OutgoingRequest(
                "PUT", origin: try server.plainOrigin, target: "/", body: replayable)
            #expect(try await outcome(transport, request).get() == 200)
        }
        let once = OnceBody(.bytes(300), pieces: Pieces(count: 3, size: 100))
        // On a refused connection the body is not read.
        let closed = OutgoingRequest(
            "PUT", origin: Origin(.plaintext, host: try Trust.Host("127.0.0.1"), port: 1), target: "/",
            body: .once(once))
        #expect(
            await outcome(transport, closed) == .failure(TransportError(.connectionRefused, fate: .notSent)))
        #expect(!once.isUsedUp)
        let request = OutgoingRequest("PUT", origin: try server.plainOrigin, target: "/", body: .once(once))
        #expect(try await outcome(transport, request).get() == 200)
        #expect(once.isUsedUp)
        #expect(await outcome(transport, request) == .failure(TransportError(.bodyUsedUp, fate: .notSent)))
    }

    @Test(arguments: [2, 4])
    func aStreamOfAnotherLengthBreaksTheRequestOff(_ count: Int) async throws {
        let answered = Locked(0)
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil, connection.readBody(300).count == 300 else { return }
            answered.with { $0 += 1 }
            connection.answer()
        }
        defer { server.stop() }
        let body = RequestBody.replayable(ReplayableBody(.bytes(300)) { Pieces(count: count, size: 100) })
        let transport = try HTTPTransport(trust: .system)
        let result = await outcome(
            transport, OutgoingRequest("PUT", origin: try server.plainOrigin, target: "/", body: body))
        guard case .failure(let error) = result, case .body = error.cause else {
            // Of a stream that is too long, so much may have gone out that the server has its answer ready.
            #expect(count == 4 && answered.with { $0 } == 1)
            return
        }
        #expect(error.fate == .outcomeUnknown)
    }
}
