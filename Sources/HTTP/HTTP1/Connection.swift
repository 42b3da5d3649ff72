import CountersignWire

/// One client connection of HTTP/1.1: it reads a request, calls the handler, and continues with the next
/// request.
///
/// Confined to its loop. The connection's task runs `serve`; only a streamed exchange reads and writes
/// concurrently. While a request has nothing to wait for but sockets, the task is parked, and callbacks of
/// the poller serve it (``serveAtOnce()``).
final class Connection: Exchange, @unchecked Sendable {
    enum Phase { case opening, idle, head, exchange }

    let stream: Stream
    let listener: Listener
    private(set) var peer: String
    private(set) var isClientUnnamed = false
    var request = Request()
    /// The connection's index in its listener's table.
    var index = 0
    /// The connection's number among all that its listener opened.
    var number: UInt64 = 0
    private(set) var phase = Phase.opening
    /// Whether the connection was opened beyond the limit: when it proves something, another one is evicted
    /// for it; otherwise it is closed.
    var isOverLimit = false
    /// Whether the connection begins with a PROXY header, before TLS.
    var expectsProxyHeader = false
    /// Whether the connection is in a list of ``LoopConnectionIndex``, and its place there; an evicted
    /// connection is in none.
    var isListed = false
    var listedStanding = ConnectionProofLevel.unproven
    var listedIndex = 0
    var unprovenPlace = UnprovenConnectionQueue.Place()

    private var input: Buffer?
    private var parser: HeadParser
    private var body = BodyReader()
    private var expectsContinue = false
    /// What the method means for the response and for a second attempt, determined once for each request.
    private(set) var method = MethodTraits()
    var isHEAD: Bool { method.isHEAD }
    private var requestKeepsAlive = true

    /// The upstream's response to this exchange; stored here so that its buffers are reused for the
    /// lifetime of the connection.
    var upstreamResponse = UpstreamResponse()
    /// The last request's forwarding, for the next one.
    var spareExchange: UpstreamExchange?
    var output: Buffer?
    var answer = ResponseProgress.none
    var answeredStatus: Int?
    var answeredBytes = 0
    private(set) var deliveryFailure: DeliveryFailure?
    private(set) var upstreamNanoseconds: UInt64?
    /// When the request was sent to the upstream, in nanoseconds of the monotonic clock; nil while no
    /// response is awaited.
    private var upstreamBegan: Int64?

    var attachment: AnyObject?
    /// The party that the upstream connections of the requests count to.
    var upstreamCallerUsage: UpstreamCallerUsage?
    /// What the connection's task does when it is resumed, and how to resume it.
    private var step: ConnectionStep?
    private var parked: UnsafeContinuation<Void, Never>?
    /// The parties that the connection and its current exchange count to.
    private(set) var usage: ConnectionBudget
    /// Since when the connection has waited for the client, and from when on it accepts no further request:
    /// seconds of the loop's clock.
    private(set) var idleSince: Int64
    private let retiresAt: Int64
    private var requests = 0
    /// Whether the response announced `Connection: close`: the connection serves no further request, even
    /// if one has arrived since.
    var closesAfterAnswer = false

    init(stream: Stream, listener: Listener, peer: String, usage: ConnectionBudget, retiresAt: Int64) {
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
        do {
            guard try await receiveProxyHeader() else { return }
            if let tls = listener.tls { try await stream.startTLS(tls, as: .server) }
            while try await serveNext() {
                let end = try await finishExchange()
                guard endExchange(), end == .goesOn else {
                    // Frees the request's body and its reservation while the client reads the response.
                    letGo()
                    return end == .isCut ? () : await linger()
                }
            }
        } catch {
            // The peer closed the connection, or a deadline passed at a point where no response is
            // possible.
        }
    }

    /// Serves requests until one of them has been served by the task; false if the connection must close.
    private func serveNext() async throws(Stream.StreamError) -> Bool {
        var step = await nextStep()
        while true {
            if step.isCostly, stream.mustWaitForTurn {
                // Also a closed connection's request is finished: it holds what its judgement took.
                try? await stream.waitForTurn()
            }
            switch step {
            case .readHead:
                guard try await receiveHead() else { return false }
                await listener.handler.handle(self)
            case .handle: await listener.handler.handle(self)
            case .finish(let work): await work()
            case .goOn(let request):
                // What is left may again need no task.
                goOn(after: request.goOn())
                step = await park()
                continue
            case .relay(let relay): await relay.goOn()
            case .endExchange: break
            case .refuse(let refusal):
                await refuseAndClose(refusal)
                return false
            case .leave:
                letGo()
                await linger()
                return false
            case .close: return false
            }
            return true
        }
    }

    /// Replaces the peer by the client that a trusted proxy names; false if the connection must close,
    /// because the header is malformed or that client is at its limit. Neither case gets a response: the
    /// peer may not speak HTTP yet.
    private func receiveProxyHeader() async throws(Stream.StreamError) -> Bool {
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
            await listener.handler.refuse(refusal, on: self)
            return false
        }
    }

    private func end() {
        letGo()
        usage.end()
        upstreamCallerUsage?.release()
        upstreamCallerUsage = nil
        // It holds the connection.
        spareExchange = nil
        if let input { loop.buffers.put(input) }
        if let output { loop.outputs.put(output) }
        (input, output) = (nil, nil)
        stream.close()
        listener.didEnd(self)
    }

    private func relist(as standing: ConnectionProofLevel) {
        guard standing != listedStanding, !usage.isExempt else { return }
        listener.relist(self, as: standing)
    }

    /// Whether no exchange is in progress, so that closing the connection costs the client no response.
    var isIdle: Bool { phase != .exchange && stream.awaitsInput }
    /// Whether the server only waits for the connection: for a request or a body, for the client to read a
    /// response, or for a turn of the loop.
    var awaitsClient: Bool { phase != .exchange || stream.isSuspended }

    /// Reads the next head; false if the connection must close, either cleanly or after a refusal that was
    /// sent.
    private func receiveHead() async throws(Stream.StreamError) -> Bool {
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
                do {
                    guard try await stream.read(into: buffer, upTo: readAhead) > 0 else { return false }
                } catch .timedOut {
                    guard !buffer.isEmpty else { return false }
                    throw Refusal(.timeout, detail: "the head was not complete after \(deadlines.head) s")
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
        deliveryFailure = nil
        upstreamBegan = nil
        upstreamNanoseconds = nil
        closesAfterAnswer = false
        releaseEmptyInput()
    }

    private func begin(_ parsed: HeadParser.Parsed) {
        phase = .exchange
        request.transport = listener.tls == nil ? .plain : .tls
        requests += 1
        usage.beginExchange()
        requestKeepsAlive =
            parsed.keepsAlive && requests < listener.limits.keepAliveRequests && loop.seconds < retiresAt
        expectsContinue = parsed.expectsContinue
        method = MethodTraits(of: &request)
        body = BodyReader(request.framing, allowance: deadlines.body)
    }

    private func refuseAndClose(_ refusal: Refusal) async {
        requestKeepsAlive = false
        request.reset()
        method = MethodTraits()
        body = BodyReader()
        body.isUnreadable = true
        await listener.handler.refuse(refusal, on: self)
        try? await flush()
        await linger()
    }

    /// False if the connection must close.
    private func endExchange() -> Bool {
        let mayStay = usage.endExchange()
        relist(as: usage.proofLevel)
        return mayStay
    }

    private enum ExchangeEnd { case goesOn, isAnswered, isCut }

    /// Completes the exchange, and returns whether the connection continues.
    private func finishExchange() async throws(Stream.StreamError) -> ExchangeEnd {
        switch answer {
        case .finished: break
        case .none:
            await respond(ServerResponse(status: 500, type: "text/plain", body: []))
        default: return .isCut
        }
        if output != nil { try await flush() }
        return !closesAfterAnswer && mayGoOn ? .goesOn : .isAnswered
    }

    /// Whether the response that begins now may leave the connection open.
    var keepsAlive: Bool { mayGoOn && !listener.isDraining && !lacksRoom }

    /// Whether the connection was opened beyond the limit, no other was evicted for it, and the limit is
    /// still exceeded.
    private var lacksRoom: Bool { isOverLimit && listener.registry.current > listener.limits.connections }

    /// Whether another request can follow on this connection. If the last response left the connection
    /// open, the next request is served even if the listener has stopped accepting meanwhile.
    private var mayGoOn: Bool { requestKeepsAlive && body.isAtEnd && !listener.endsIdle }

    /// Skips a body that arrived together with its head, as small ones mostly do: a response that did not
    /// need the body then does not have to close the connection.
    func skipArrivedBody() {
        guard !expectsContinue, let input else { return }
        body.skip(in: input)
    }

    func closeAfterAnswer() { abandonKeepAlive() }

    func abandonKeepAlive() { requestKeepsAlive = false }

    /// Closes the connection so that the response arrives: closing a socket with unread input resets the
    /// connection, and the client may lose the response. Ends the output, then reads and discards input for
    /// at most three seconds. Source: RFC 9112 §9.6.
    private func linger() async {
        stream.shutdownOutput()
        guard !body.isAtEnd || input?.isEmpty == false || !stream.isQuiet() else { return }
        stream.readDeadline = loop.seconds + 3
        let buffer = takeInput()
        do {
            repeat { buffer.clear() } while try await stream.read(into: buffer, upTo: readAhead) > 0
        } catch {
            // The connection closes, whatever the error.
        }
    }

    /// Bytes of input that the connection buffers ahead, except for the body of a proven caller.
    private let readAhead: Int

    /// Gives an input buffer without bytes back to the loop, before a long wait.
    func releaseEmptyInput() {
        guard input?.isEmpty == true, let buffer = input.take() else { return }
        loop.buffers.put(buffer)
    }

    private func takeInput() -> Buffer {
        if let input { return input }
        let buffer = loop.buffers.take()
        input = buffer
        return buffer
    }

    // MARK: Without the task

    /// Waits until there is something for the task to do: at once where the engine serves all requests by
    /// tasks, and otherwise when a request cannot be served without one.
    private func nextStep() async -> ConnectionStep {
        guard listener.settings.servingPath == .immediate else { return .readHead }
        step = nil
        awaitHead()
        return await park()
    }

    /// Waits for ``resumeTask(with:)``, unless it has been called.
    private func park() async -> ConnectionStep {
        if step == nil { await withUnsafeContinuation { parked = $0 } }
        if let share = stream.share { loop.charge(share) }
        defer { step = nil }
        return step ?? .close
    }

    /// Resumes the connection's task, which is parked or about to be.
    func resumeTask(with step: ConnectionStep) {
        self.step = step
        guard let continuation = parked else { return }
        parked = nil
        continuation.resume()
    }

    /// Waits for the next request.
    private func awaitHead() {
        prepareForHead()
        // What has arrived already, such as a pipelined request, the poller does not report.
        guard input == nil, !stream.hasBufferedInput else { return resumeTask(with: .readHead) }
        guard !listener.endsIdle else { return resumeTask(with: .close) }
        if phase != .opening { stream.readDeadline = loop.seconds + Int64(deadlines.idle) }
        phase = .idle
        idleSince = loop.seconds
        guard stream.awaitInput(for: self, called: .afterPoll) else { return resumeTask(with: .close) }
    }

    /// Reads a head that has arrived, and serves its request as far as nothing has to wait.
    private func serveAtOnce() {
        phase = .head
        stream.readDeadline = loop.seconds + Int64(deadlines.head)
        loop.charged = stream.share
        if stream.mustWaitForTurn { stream.queueForTurn(self) } else { serveArrived() }
    }

    /// Goes on in the turn of the connection's address.
    func serveInTurn() {
        guard stream.beginTurn() else { return resumeTask(with: .close) }
        loop.beginCallback()
        serveArrived()
        loop.endCallback()
    }

    private func serveArrived() {
        let buffer = takeInput()
        switch stream.readIfReady(into: buffer, upTo: readAhead) {
        case .done: break
        case .wantsRead, .wantsWrite:
            // TLS messages without content.
            return resumeTask(with: .readHead)
        case .ended, .failed: return resumeTask(with: .close)
        }
        do throws(Refusal) {
            guard let parsed = try parser.parse(buffer.span, into: &request) else {
                return resumeTask(with: .readHead)
            }
            buffer.take(parsed.length)
            begin(parsed)
        } catch {
            return resumeTask(with: .refuse(error))
        }
        goOn(after: listener.handler.handleAtOnce(self))
    }

    private func goOn(after outcome: ImmediateOutcome) {
        switch outcome {
        case .declined: resumeTask(with: .handle)
        case .forwarded: break
        case .suspended: releaseEmptyInput()
        case .answered: didEndAtOnce()
        case .waits(let work): resumeTask(with: .finish(work))
        }
    }

    func goOn(with request: any SuspendedRequest) {
        loop.perform { [self] in
            loop.beginCallback()
            loop.charged = stream.share
            // Many requests may go on at once, those of one group of the log's records.
            if stream.mustWaitForTurn {
                resumeTask(with: .goOn(request))
            } else {
                goOn(after: request.goOn())
            }
            loop.endCallback()
        }
    }

    /// Ends an exchange whose response was sent without the task, and waits for the next request.
    func didEndAtOnce() {
        guard case .finished = answer, output == nil, !closesAfterAnswer, mayGoOn else {
            return resumeTask(with: .endExchange)
        }
        guard endExchange() else { return resumeTask(with: .leave) }
        awaitHead()
    }

    func readArrivedBody(atMost most: Int) throws(Refusal) -> Bool {
        guard case .length(let length) = request.framing, let buffer = input, buffer.count >= length else {
            return false
        }
        expectsContinue = false
        try checkBodyLength(length, atMost: min(most, listener.limits.heldBodyBytes))
        try hold(length)
        let bytes = UnsafeRawBufferPointer(rebasing: buffer.filled.prefix(length))
        request.body.append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
        body.skip(in: buffer)
        return true
    }

    private func checkBodyLength(_ length: Int, atMost limit: Int) throws(Refusal) {
        guard length <= limit else {
            throw Refusal(.tooLarge, detail: "a body of this kind is limited to \(limit) bytes")
        }
    }

    // MARK: The caller

    var source: AddressRecord { usage.source }
    var isOverloaded: Bool { isOverLimit || usage.isOverloaded }

    func checkOverload() throws(Refusal) {
        if isOverLimit, usage.proof != nil {
            throw Refusal(.unavailable, detail: "too many connections", retryAfter: 1)
        }
        try usage.checkOverload()
    }

    func attribute(to address: NetworkAddress) { usage.attribute(to: address, now: loop.seconds) }

    func recordProof(_ proof: CallerProof) {
        if !usage.recordProof(proof) { abandonKeepAlive() }
        let standing = proof.proofLevel
        if standing > listedStanding { relist(as: standing) }
        if isOverLimit { isOverLimit = !listener.makeRoom(for: standing) }
    }

    // MARK: The request's body

    /// Appends the next bytes of the body to `target`; 0 at the body's end, or if `target` is full.
    func readBody(into target: Buffer) async throws(Refusal) -> Int {
        guard !body.isAtEnd, !target.isFull else { return 0 }
        let buffer = takeInput()
        // A client that has begun to send the body does not wait for `100 Continue`.
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

    /// Reads the body until its end or until `target` is full. The bytes count as those of a held body.
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
        throw Refusal(.unavailable, detail: "too many bodies are being held", retryAfter: 1)
    }

    /// Waits until the input holds further bytes of the body; holds no second buffer meanwhile.
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
        guard try await stream.read(into: buffer, upTo: most) > 0 else { throw Stream.StreamError.closed }
        body.didWait(seconds: loop.seconds - before)
    }

    func readWholeBody(atMost most: Int) async throws(Refusal) {
        let limit = min(most, listener.limits.heldBodyBytes)
        try checkOverload()
        if case .length(let length) = request.framing { try checkBodyLength(length, atMost: limit) }
        while !body.isAtEnd {
            try await waitForBody()
            try holdPiece(limit: limit)
        }
    }

    /// Moves the received part of the body to the request.
    private func holdPiece(limit: Int) throws(Refusal) {
        let piece = loop.buffers.take()
        defer { loop.buffers.put(piece) }
        do {
            _ = try body.take(from: takeInput(), into: piece)
        } catch {
            throw cut(error)
        }
        guard request.body.count + piece.count <= limit else {
            throw Refusal(.tooLarge, detail: "a body without a length is limited to \(limit) bytes")
        }
        if !piece.isEmpty { try hold(piece.count) }
        request.body.append(contentsOf: piece.filled.assumingMemoryBound(to: UInt8.self))
    }

    private func cut(_ error: any Error) -> Refusal {
        let isAbandoned = body.isUnreadable
        body.isUnreadable = true
        requestKeepsAlive = false
        switch error {
        case let refusal as Refusal: return refusal
        case Stream.StreamError.timedOut: return Refusal(.timeout, detail: "the body came too slowly")
        default:
            if !isAbandoned { didFailToDeliver(because: .clientAborted) }
            return Refusal(.malformed, detail: "the connection ended before the body did")
        }
    }

    /// Begins to measure the upstream. `began` is when the first bytes of the request were sent to it, in
    /// nanoseconds of the monotonic clock.
    func didBeginUpstream(at began: Int64) { upstreamBegan = began }

    /// Ends it, at the time at which the loop's present callback or job began: nothing else has waited since.
    func didEndUpstream() {
        guard let began = upstreamBegan else { return }
        upstreamBegan = nil
        upstreamNanoseconds = UInt64(max(0, loop.jobBegan &- began))
    }

    /// Records why the response is not delivered whole. The first reason is the cause of any further one.
    func didFailToDeliver(because failure: DeliveryFailure) {
        if deliveryFailure == nil { deliveryFailure = failure }
    }

    /// Ends a wait for more of the body, because the response has been sent already.
    func abandonBody() {
        requestKeepsAlive = false
        body.isUnreadable = true
        stream.interruptReader()
    }
}

/// What a connection's task does next.
enum ConnectionStep {
    /// Reads a head, and lets the handler handle its request.
    case readHead
    /// Lets the handler handle a request whose head was read.
    case handle
    /// Does the part of a request that has to wait.
    case finish(() async -> Void)
    /// Goes on with a suspended request once its address's turn has come.
    case goOn(any SuspendedRequest)
    /// Continues to forward a request.
    case relay(UpstreamExchange)
    /// Sends the rest of a response, and ends the exchange.
    case endExchange
    /// Refuses a malformed head, and closes.
    case refuse(Refusal)
    /// Closes the connection after a response that was sent.
    case leave
    case close

    /// Whether the step may take long. The callback that gave it to the task was short, so the task looks
    /// whether its address has used its part of the turn meanwhile; reading a head looks for itself.
    var isCostly: Bool {
        switch self {
        case .handle, .finish, .refuse, .goOn: true
        case .readHead, .relay, .endExchange, .leave, .close: false
        }
    }
}

extension Connection: StreamWaiter {
    func didWake(stream: Stream, by wake: Stream.Wake) {
        guard wake == .ready else { return resumeTask(with: .close) }
        loop.beginCallback()
        serveAtOnce()
        loop.endCallback()
    }
}
