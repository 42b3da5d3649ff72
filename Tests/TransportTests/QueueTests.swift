import CountersignMemory
import CountersignTestKit
import CountersignTestServer
import CountersignTransport
import CountersignTrust
import Testing
import Waiting

/// Places for requests, and giving them up.
@Suite(.timeLimit(.minutes(15)))
struct QueueTests {
    private struct Crowd {
        var now = 0
        var most = 0
        var order: [String] = []
    }

    private func transport(limit: Int) throws -> HTTPTransport {
        var options = TransportOptions()
        options.concurrentRequests = limit
        return try HTTPTransport(trust: .system, options: options)
    }

    @Test func aHundredAtOnceHaveEightPlaces() async throws {
        let crowd = Locked(Crowd())
        let server = try TestServer(.plain) { connection in
            while connection.readHead() != nil {
                crowd.with { crowd in
                    crowd.now += 1
                    crowd.most = max(crowd.most, crowd.now)
                }
                blockUntil("eight at once") { crowd.with { $0.most } >= 8 }
                crowd.with { $0.now -= 1 }
                connection.answer("200 OK", body: "ok")
            }
        }
        defer { server.stop() }
        let transport = try transport(limit: 8)
        let origin = try server.plainOrigin
        let answered = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<100 {
                group.addTask {
                    (try? await outcome(
                        transport, OutgoingRequest("GET", origin: origin, target: "/\(number)")
                    ).get()) == 200
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(answered == 100)
        #expect(crowd.with { $0.most } == 8)
        // And so many connections, used again.
        #expect(server.tally.connections <= 8)
    }

    @Test func firstComeFirstServed() async throws {
        let mayAnswer = Locked(false)
        let crowd = Locked(Crowd())
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                let path = head.split(separator: " ")[1]
                crowd.with { $0.order.append(String(path)) }
                if path == "/0" { blockUntil("the others are queued") { mayAnswer.with { $0 } } }
                connection.answer()
            }
        }
        defer { server.stop() }
        let transport = try transport(limit: 1)
        let origin = try server.plainOrigin
        // Each is queued before the next begins.
        let tasks = (0..<5).map { number in
            Task.immediate {
                await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/\(number)"))
            }
        }
        mayAnswer.with { $0 = true }
        for task in tasks { #expect(try await task.value.get() == 200) }
        #expect(crowd.with { $0.order } == ["/0", "/1", "/2", "/3", "/4"])
    }

    @Test func cancellingEndsTheTransferAndFreesItsPlace() async throws {
        let ended = Locked(0)
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                guard head.hasPrefix("GET /hang ") else {
                    connection.answer()
                    continue
                }
                // Nil when the client has gone.
                while connection.read() != nil {}
                ended.with { $0 += 1 }
            }
        }
        defer { server.stop() }
        let transport = try transport(limit: 1)
        let origin = try server.plainOrigin
        let hanging = Task {
            await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/hang"))
        }
        await until("the request's bytes") { server.tally.received > 0 }
        let queued = Task.immediate {
            await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/queued"))
        }
        queued.cancel()
        #expect(await queued.value == .failure(TransportError(.cancelled, fate: .notSent)))
        hanging.cancel()
        #expect(await hanging.value == .failure(TransportError(.cancelled, fate: .outcomeUnknown)))
        await until("the end of the connection") { ended.with { $0 } == 1 }
        #expect(
            try await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/")).get() == 200)
        let late = Task {
            await until("cancellation") { Task.isCancelled }
            return await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/late"))
        }
        late.cancel()
        #expect(await late.value == .failure(TransportError(.cancelled, fate: .notSent)))
    }

    @Test func whoseTimeIsUpGivesHisPlaceToTheNext() async throws {
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("GET /hang ") {
                    while connection.read() != nil {}
                } else {
                    connection.answer()
                }
            }
        }
        defer { server.stop() }
        var options = TransportOptions()
        options.concurrentRequests = 1
        let clock = ManualClock()
        options.clock = clock.deviceClock
        options.idleTimeout = .within(.milliseconds(20))
        let transport = try HTTPTransport(trust: .system, options: options)
        let origin = try server.plainOrigin
        let hanging = Task {
            await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/hang"))
        }
        await until("the request's bytes") { server.tally.received > 0 }
        let next = Task.immediate {
            await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/next"))
        }
        clock.advance(by: .milliseconds(21))
        #expect(await hanging.value == .failure(TransportError(.timedOut(.idle), fate: .outcomeUnknown)))
        #expect(try await next.value.get() == 200)
    }

    @Test func lettingGoOfAnAnswerFreesItsPlace() async throws {
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n".utf8))
            while connection.write([UInt8](repeating: 0x61, count: 65_536)) {}
        }
        defer { server.stop() }
        let transport = try transport(limit: 1)
        for _ in 0..<3 {
            let response = try await transport.send(
                OutgoingRequest("GET", origin: try server.plainOrigin, target: "/"))
            #expect(response.status == 200)
        }
        #expect(server.tally.connections == 3)
    }

    @Test func cancellingWhileReadingIsAnError() async throws {
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123".utf8))
            while connection.read() != nil {}
        }
        defer { server.stop() }
        let transport = try transport(limit: 1)
        let request = OutgoingRequest("GET", origin: try server.plainOrigin, target: "/")
        let hasRead = Locked(false)
        let reading = Task {
            var body = try await transport.send(request).body.makeAsyncIterator()
            #expect(try await body.next() == Array("123".utf8))
            hasRead.with { $0 = true }
            _ = try await body.next()
        }
        await until("the body's beginning") { hasRead.with { $0 } }
        reading.cancel()
        await #expect(throws: TransportError(.cancelled, fate: .brokenOff)) { try await reading.value }
    }
}
