import CountersignMemory
import CountersignTestServer
import CountersignTrust
import Glibc
import Testing
import Waiting

@testable import Countersign

/// Streaming over the default transport, to a test server.
@Suite(.timeLimit(.minutes(15))) struct StreamingTests {
    private static let piece = [UInt8](repeating: 0x61, count: 100_000)

    /// Answers each request with thirty pieces, and counts the written pieces.
    private static func server(_ written: Locked<Int>) throws -> TestServer {
        try TestServer(.plain) { connection in
            while connection.readHead() != nil {
                connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n".utf8))
                for _ in 0..<30 {
                    guard connection.write(piece) else { return }
                    written.with { $0 += 1 }
                }
            }
        }
    }

    @Test func aBodyIsReadAsItComes() async throws {
        let server = try StreamingTests.server(Locked(0))
        defer { server.stop() }
        let client = try server.client(TestFolder())
        let last = Locked(TransferProgress())
        let answer = try await client.download(for: APIRequest("/film").byTheApp()) { progress in
            last.with { $0 = progress }
        }
        #expect(answer.response.status == 200 && answer.response.length == .bytes(3_000_000))
        var (count, pieces) = (0, 0)
        for try await piece in answer.body {
            count += piece.count
            pieces += 1
        }
        #expect(count == 3_000_000 && pieces > 1)
        await until("the whole body's progress") { last.with { $0.received } == 3_000_000 }
    }

    @Test func aBodyIsCollectedUpToItsLimitOnly() async throws {
        let server = try StreamingTests.server(Locked(0))
        defer { server.stop() }
        let client = try server.client(TestFolder())
        for limit in [0, 150_000, 2_999_999] {
            let answer = try await client.download(for: APIRequest("/film").byTheApp())
            await #expect { try await answer.body.collect(upTo: limit) } throws: { error in
                guard case CountersignError.answerTooLarge(limit) = error else { return false }
                return true
            }
        }
        let answer = try await client.download(for: APIRequest("/film").byTheApp())
        #expect(try await answer.body.collect(upTo: 3_000_000).count == 3_000_000)
    }

    @Test func aFileIsThereOnceItIsWhole() async throws {
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("GET /whole ") { connection.answer("200 OK", body: "contents") }
                if head.hasPrefix("GET /missing ") { connection.answer("404 Not Found", body: "none") }
                guard head.hasPrefix("GET /broken ") else { continue }
                connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123".utf8))
                return
            }
        }
        defer { server.stop() }
        let folder = try TestFolder()
        let client = try server.client(folder)
        let path = "\(folder.path)/film"
        await #expect { try await client.download(for: APIRequest("/broken").byTheApp(), to: path) } throws: {
            error in
            guard case CountersignError.transport(let error) = error else { return false }
            return error.fate == .brokenOff
        }
        await #expect {
            try await client.download(for: APIRequest("/missing").byTheApp(), to: path)
        } throws: { error in
            guard case CountersignError.status(let response, let body) = error else { return false }
            return response.status == 404 && body == Array("none".utf8)
        }
        #expect(access(path, F_OK) != 0)
        try await client.download(for: APIRequest("/whole").byTheApp(), to: path)
        #expect(folder.contents("film") == "contents")
        #expect(folder.names.filter { $0.hasPrefix("film") } == ["film"])
    }

    @Test func letGoOfTheTransferEnds() async throws {
        let written = Locked(0)
        let gone = Locked(false)
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 90000000\r\n\r\n".utf8))
            for _ in 0..<900 {
                guard connection.write(StreamingTests.piece) else { break }
                written.with { $0 += 1 }
            }
            gone.with { $0 = true }
        }
        defer { server.stop() }
        let client = try server.client(TestFolder())
        do {
            let answer = try await client.download(for: APIRequest("/film").byTheApp())
            for try await _ in answer.body { break }
        }
        await until("the end of the connection") { gone.with { $0 } }
        #expect(written.with { $0 } < 900)
    }

    @Test func cancellingPassesThrough() async throws {
        let (asked, gone) = (Locked(false), Locked(false))
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            asked.with { $0 = true }
            // Returns once the client has closed the connection.
            _ = connection.read()
            gone.with { $0 = true }
        }
        defer { server.stop() }
        let client = try server.client(TestFolder())
        let task = Task { try await client.data(for: APIRequest("/slow").byTheApp()) }
        await until("the request") { asked.with { $0 } }
        task.cancel()
        await #expect { try await task.value } throws: { error in
            if case CountersignError.cancelled = error { true } else { false }
        }
        await until("the end of the connection") { gone.with { $0 } }
    }

    @Test func requestsAtOnceAreLimited() async throws {
        let tally = Locked((now: 0, most: 0))
        let server = try TestServer(.plain) { connection in
            while connection.readHead() != nil {
                tally.with { tally in
                    tally.now += 1
                    tally.most = max(tally.most, tally.now)
                }
                // A fourth would be counted too.
                blockUntil("three at once") { tally.with { $0.most } >= 3 }
                tally.with { $0.now -= 1 }
                connection.answer("200 OK", body: "x")
            }
        }
        defer { server.stop() }
        let client = try server.client(TestFolder()) { options in
            var transport = TransportOptions()
            transport.concurrentRequests = 3
            options.transport = .standard(transport)
        }
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<12 {
                group.addTask { try await client.data(for: APIRequest("/x").byTheApp()).1.status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == [Int](repeating: 200, count: 12))
        #expect(tally.with { $0.most } == 3)
    }

    @Test func aRequestOutlivesItsClient() async throws {
        let (asked, mayAnswer) = (Locked(false), Locked(false))
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            asked.with { $0 = true }
            blockUntil("the client has gone") { mayAnswer.with { $0 } }
            connection.answer("200 OK", body: "late")
        }
        defer { server.stop() }
        let folder = try TestFolder()
        var client: CountersignClient? = try server.client(folder)
        weak let gone = client?.core
        let answer = Locked<APIAnswer?>(nil)
        let task = Task { [client] in
            let answered = try await client?.download(for: APIRequest("/late").byTheApp())
            answer.with { $0 = answered }
        }
        client = nil
        await until("the request") { asked.with { $0 } }
        mayAnswer.with { $0 = true }
        try await task.value
        // The response head has arrived and the client is released; the body still arrives.
        let body = try #require(answer.with { $0 }).body
        #expect(String(decoding: try await body.collect(upTo: 100), as: UTF8.self) == "late")
        #expect(gone == nil)
    }
}
