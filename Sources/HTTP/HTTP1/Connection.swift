import CountersignWire

/// One client connection speaking HTTP/1.1: reads a request, has it handled, and goes on to the next.
///
/// Confined to its loop. Its own task runs `serve`, top to bottom; only a streamed exchange reads and writes at once.
final class Connection: Exchange, @unchecked Sendable {
    enum Phase { case opening, idle, head, exchange }

    let stream: Stream
    let listener: Listener
    private(set) var peer: String
    private(set) var isClientUnnamed = false
    var request = Request()
    /// Where it stands in its listener's table.
    var index = 0
    /// Of all connections that its listener opened, which.
    var number: UInt64 = 0
    private(set) var phase = Phase.opening
    /// There were too many connections already: others give way to it once it has proved something, or it is
    /// ended.
    var isOverLimit = false
    /// It begins with a PROXY header, before TLS.
    var expectsProxyHeader = false
    /// Its place in the listener's lists; it is in none once it has given way.
    var isListed = false
    var listedStanding = ConnectionStanding.unproven
    var listedIndex = 0
    var unprovenPlace = UnprovenQueue.Place()

    private var input: Buffer?
    private var parser: HeadParser
    private var body = BodyReader()
    private var expectsContinue = false
    /// Asked once: the answer's body depends on it.
    private(set) var isHEAD = false
    private var requestKeepsAlive = true

    /// The upstream's answer to this exchange; here so that its buffers last as long as the connection.
    var upstreamResponse = UpstreamResponse()
    var output: Buffer?
    var answer = AnswerState.none
    var answeredStatus: Int?
    var answeredBytes = 0

    var attachment: AnyObject?
    /// Whom the upstream connections of its requests count to.
    var upstreamParty: UpstreamParty?
    /// Whom the connection and its present exchange count to.
    private(set) var usage: ConnectionUsage
    /// On the loop's clock: since when it has waited for the client, and from when on it takes no further request.
    private(set) var idleSince: Int64
    private let retiresAt: Int64
    private var requests = 0
    /// The answer said `Connection: close`, or had no end but that: no other request is served, whatever came since.
    var closesAfterAnswer = false

    init(stream: Stream, listener: Listener, peer: String, usage: ConnectionUsage, retiresAt: Int64) {
        self.stream = stream
        self.listener = listener
        self.peer = peer
        self.usage = usage
        self.retiresAt = retiresAt
        idleSince = stream.loop.seconds
        readAhead = listener.limits.headBytes + 4_096
        parser = HeadParser(
            limits: listener.limits, rules: listener.settings.rules,
            transport: listener.tls == nil ? .plain : .tls)
    }

    var loop: EventLoop { stream.loop }
    var deadlines: Deadlines { listener.deadlines }

    // MARK: The life of a connection

    func serve() async {
        defer { end() }
        stream.deadline = loop.seconds + Int64(deadlines.head)
        do throws(Stream.Failure) {
            guard try await receiveProxyHeader() else { return }
            if let tls = listener.tls { try await stream.startTLS(tls, as: .server) }
            while try await receiveHead() {
                await listener.handler.handle(self)
                let end = try await finishExchange()
                let mayStay = usage.endExchange()
                relist(as: usage.standing)
                guard end == .goesOn, mayStay else {
                    // Neither the request nor its body counts any more while the client takes its answer.
                    letGo()
                    return end == .isCut ? () : await linger()
                }
            }
        } catch {
            // The other side went away, or its time ran out with nothing to be said to it.
        }
    }

    /// Takes the client that a trusted proxy names for the peer; false where the connection is to end, because the header cannot be
    /// read or that client has as many connections as it may. Neither is answered: the other side may not speak HTTP yet.
    private func receiveProxyHeader() async throws(Stream.Failure) -> Bool {
        guard expectsProxyHeader else { return true }
        switch try await stream.receiveProxyHeader() {
        case .success(let header):
            guard let client = header.client else {
                isClientUnnamed = true
                return true
            }
            guard let usage = listener.usage(of: client) else { return false }
            self.usage.end()
            self.usage = usage
            listener.relist(self, as: .unproven)
            stream.replaceShare(usage.source.address)
            peer = client.isIPv6 ? "[\(client.text)]:\(header.port)" : "\(client.text):\(header.port)"
            return true
        case .failure(let refusal):
            answer = .aborted
            await listener.handler.refuse(refusal, self)
            return false
        }
    }

    private func end() {
        letGo()
        usage.end()
        upstreamParty?.release()
        upstreamParty = nil
        if let input { loop.buffers.put(input) }
        if let output { loop.buffers.put(output) }
        (input, output) = (nil, nil)
        stream.close()
        listener.didEnd(self)
    }

    private func relist(as standing: ConnectionStanding) {
        guard standing != listedStanding, !usage.isExempt else { return }
        listener.relist(self, as: standing)
    }

    /// Whether nothing of it is under way, so that ending it costs the client no answer.
    var isIdle: Bool { phase != .exchange && stream.awaitsInput }
    /// Whether the server does nothing for it but wait: for a request or a body, for an answer to be taken,
    /// or for its turn.
    var awaitsClient: Bool { phase != .exchange || stream.isSuspended }

    /// Reads the next head; false where the connection is to end, cleanly or with a refusal already sent.
    private func receiveHead() async throws(Stream.Failure) -> Bool {
        prepareForHead()
        if input == nil {
            guard !listener.endsIdle else { return false }
            if phase != .opening { stream.readDeadline = loop.seconds + Int64(deadlines.idle) }
            phase = .idle
            idleSince = loop.seconds
            try await stream.untilInput()
        }
        phase = .head
        stream.readDeadline = loop.seconds + Int64(deadlines.head)
        if stream.mustWaitForTurn { try await stream.waitForTurn() }
        let buffer = takeInput()
        do throws(Refusal) {
            while true {
                if !buffer.isEmpty, let parsed = try parser.parse(buffer.span, into: &request) {
                    buffer.take(parsed.length)
                    begin(parsed)
                    return true
                }
                do throws(Stream.Failure) {
                    guard try await stream.read(into: buffer, upTo: readAhead) > 0 else { return false }
                } catch .timedOut {
                    guard !buffer.isEmpty else { return false }
                    throw Refusal(.timeout, "the head was not complete after \(deadlines.head) s")
                } catch {
                    return false
                }
            }
        } catch {
            await refuseAndClose(error)
            return false
        }
    }

    private func letGo() {
        usage.releaseHeld()
        if !request.body.isEmpty { request.body = [] }
    }

    private func prepareForHead() {
        letGo()
        answer = .none
        answeredStatus = nil
        answeredBytes = 0
        closesAfterAnswer = false
        if let buffer = input, buffer.isEmpty {
            loop.buffers.put(buffer)
            input = nil
        }
    }

    private func begin(_ parsed: HeadParser.Parsed) {
        phase = .exchange
        request.transport = listener.tls == nil ? .plain : .tls
        requests += 1
        usage.beginExchange()
        requestKeepsAlive =
            parsed.keepsAlive && requests < listener.limits.keepAliveRequests && loop.seconds < retiresAt
        expectsContinue = parsed.expectsContinue
        let head = request.head
        isHEAD = head.span.extracting(request.method.range).matches("HEAD")
        body = BodyReader(request.framing, allowance: deadlines.body)
    }

    private func refuseAndClose(_ refusal: Refusal) async {
        requestKeepsAlive = false
        request.reset()
        isHEAD = false
        body = BodyReader()
        body.isUnreadable = true
        await listener.handler.refuse(refusal, self)
        await linger()
    }

    private enum ExchangeEnd { case goesOn, isAnswered, isCut }

    /// Sees the exchange off, and tells whether the connection goes on.
    private func finishExchange() async throws(Stream.Failure) -> ExchangeEnd {
        switch answer {
        case .finished: break
        case .none:
            await respond(Answer(status: 500, type: "text/plain", body: []))
        default: return .isCut
        }
        try await flush()
        return !closesAfterAnswer && mayGoOn ? .goesOn : .isAnswered
    }

    /// Whether the answer that begins now may leave the connection open.
    var keepsAlive: Bool { mayGoOn && !listener.isDraining && !lacksRoom }

    /// Whether it was opened over the limit, found no room by what it proved, and the limit is still
    /// exceeded.
    private var lacksRoom: Bool { isOverLimit && listener.registry.current > listener.limits.connections }

    /// Whether another request can follow on this connection. One that was told so gets its next answer, though the
    /// listener has stopped accepting meanwhile.
    private var mayGoOn: Bool { requestKeepsAlive && body.isAtEnd && !listener.endsIdle }

    /// A small body mostly comes with its head: then an answer that did not need it need not end the connection.
    func skipArrivedBody() {
        guard !expectsContinue, let input else { return }
        body.skip(in: input)
    }

    func closeAfterAnswer() { abandonKeepAlive() }

    func abandonKeepAlive() { requestKeepsAlive = false }

    /// Closes so that the answer arrives: a close with input unread would reset the connection and take the answer with
    /// it. So: end our side, then read what still comes, for two seconds at most.
    private func linger() async {
        stream.shutdownOutput()
        guard !body.isAtEnd || input?.isEmpty == false || !stream.isQuiet() else { return }
        stream.readDeadline = loop.seconds + 3
        let buffer = takeInput()
        do throws(Stream.Failure) {
            repeat { buffer.clear() } while try await stream.read(into: buffer, upTo: readAhead) > 0
        } catch {
            // Whatever ended it, the connection is over.
        }
    }

    /// Bytes of input that are held while the client's requests wait for their answers, unless they are a
    /// proven caller's body.
    private let readAhead: Int

    private func takeInput() -> Buffer {
        if let input { return input }
        let buffer = loop.buffers.take()
        input = buffer
        return buffer
    }

    // MARK: Who calls

    var source: AddressRecord { usage.source }
    var isOverloaded: Bool { isOverLimit || usage.isOverloaded }

    func checkOverload() throws(Refusal) {
        if isOverLimit, usage.proof != nil {
            throw Refusal(.unavailable, "too many connections", retryAfter: 1)
        }
        try usage.checkOverload()
    }

    func attribute(to address: NetworkAddress) { usage.attribute(to: address, now: loop.seconds) }

    func recordProof(_ proof: CallerProof) {
        if !usage.recordProof(proof) { abandonKeepAlive() }
        let standing = proof.standing
        if standing > listedStanding { relist(as: standing) }
        if isOverLimit { isOverLimit = !listener.makeRoom(for: standing) }
    }

    // MARK: The request's body

    /// Adds the next bytes of the body to `target`; 0 at the body's end, or where `target` is full.
    func readBody(into target: Buffer) async throws(Refusal) -> Int {
        guard !body.isAtEnd, !target.isFull else { return 0 }
        let buffer = takeInput()
        // Who has begun to send the body is not waiting to be told.
        if !buffer.isEmpty { expectsContinue = false }
        do {
            while true {
                let count = try body.take(from: buffer, into: target)
                if count > 0 || body.isAtEnd { return count }
                try await receiveBody(into: buffer)
            }
        } catch {
            throw cut(error)
        }
    }

    /// Reads as much of the body as fits `target`, or all of it. Its bytes count as those of a held body do.
    func readFirstPart(into target: Buffer) async throws(Refusal) {
        while !target.isFull {
            let count = try await readBody(into: target)
            guard count > 0 else { return }
            try hold(count)
        }
    }

    private func hold(_ count: Int) throws(Refusal) {
        guard !usage.hold(count) else { return }
        listener.registry.counters.add(.refusedBody)
        throw Refusal(.unavailable, "too many bodies are being held", retryAfter: 1)
    }

    /// Waits for bytes behind those that were taken from the input; no second buffer is held meanwhile.
    private func waitForBody() async throws(Refusal) {
        let buffer = takeInput()
        guard buffer.isEmpty else {
            expectsContinue = false
            return
        }
        do {
            try await receiveBody(into: buffer)
        } catch {
            throw cut(error)
        }
    }

    private func receiveBody(into buffer: Buffer) async throws {
        if expectsContinue {
            expectsContinue = false
            try await sendContinue()
        }
        let before = loop.seconds
        stream.readDeadline = before + Int64(body.allowance)
        let most = usage.proof == nil ? readAhead : Buffer.size
        guard try await stream.read(into: buffer, upTo: most) > 0 else { throw Stream.Failure.closed }
        body.didWait(seconds: loop.seconds - before)
    }

    func readWholeBody(atMost most: Int) async throws(Refusal) {
        let limit = min(most, listener.limits.heldBodyBytes)
        try checkOverload()
        if case .length(let length) = request.framing {
            guard length <= limit else { throw Refusal(.tooLarge, "a body of this kind is limited to \(limit) bytes") }
        }
        while !body.isAtEnd {
            try await waitForBody()
            try holdPiece(limit: limit)
        }
    }

    /// Moves what has come of the body to the request.
    private func holdPiece(limit: Int) throws(Refusal) {
        let piece = loop.buffers.take()
        defer { loop.buffers.put(piece) }
        do throws(Refusal) {
            _ = try body.take(from: takeInput(), into: piece)
        } catch {
            throw cut(error)
        }
        guard request.body.count + piece.count <= limit else {
            throw Refusal(.tooLarge, "a body without a length is limited to \(limit) bytes")
        }
        if !piece.isEmpty { try hold(piece.count) }
        request.body.append(contentsOf: piece.filled.assumingMemoryBound(to: UInt8.self))
    }

    private func cut(_ error: any Error) -> Refusal {
        body.isUnreadable = true
        requestKeepsAlive = false
        return switch error {
        case let refusal as Refusal: refusal
        case Stream.Failure.timedOut: Refusal(.timeout, "the body came too slowly")
        default: Refusal(.malformed, "the connection ended before the body did")
        }
    }

    /// Ends a wait for more of the body: the answer is out already.
    func abandonBody() {
        requestKeepsAlive = false
        stream.interruptReader()
    }
}
