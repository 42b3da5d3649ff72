import CountersignWire

/// The forwarding of one request to the upstream, and of its response to the client. Confined to its loop.
///
/// A connection whose requests are forwarded without a task keeps its object for the next one: see
/// ``renew(for:as:)``.
final class UpstreamExchange: @unchecked Sendable {
    /// A failure before the response to the client begins.
    enum RelayError: Error {
        case upstream(Stream.StreamError)
        /// The upstream's response is malformed.
        case malformed(String)
        /// The request is refused, because of its head or of its body while it streamed.
        case refused(Refusal)

        /// Nil if it is a refusal, which says enough.
        var deliveryFailure: DeliveryFailure? {
            switch self {
            case .upstream(.timedOut): .upstreamTimeout
            case .upstream: .upstreamClosed
            case .malformed: .upstreamInvalid
            case .refused: nil
            }
        }
    }

    let connection: Connection
    let pool: UpstreamPool
    private(set) var party: UpstreamCallerUsage
    private(set) var forwarding: ForwardedRequest
    private var parser = ResponseParser()
    private var hasReceivedBytes = false
    /// Whether the connection failed before its socket accepted a byte of the request.
    private(set) var hasSentNothing = false
    /// Whether the response ended regularly and the connection may carry another request.
    private(set) var isReusable = false

    /// Where the forwarding stands when the connection's task takes it over.
    var progress = UpstreamProgress.noConnection
    /// The upstream connection in use, for a request that is forwarded without a task.
    private var taken: UpstreamConnection?
    /// The generation of the upstream connection in use.
    var generation = 0
    /// Learns how the forwarding ended, if no task waits for it.
    private var observer: (any ForwardObserver)?
    /// What ``sendNow()`` sends.
    private var lateSend = LateSend.request

    /// The transfer in progress, while the client's speed determines how long it holds the upstream
    /// connection.
    private var transfer: ClientTransfer?

    // For a request that is not sent at once; see ClientTransfer.swift.
    /// The beginning of a streamed body.
    var firstPart: Buffer?
    /// Bytes of a streamed body received from the client.
    var received = 0
    /// The bytes that the socket did not accept at once.
    var unsent: Buffer?
    /// Bytes of a held body that were sent or are in `unsent`.
    var bodySent = 0
    var isUploading = false
    var hasUploadFailed = false
    var uploadRefusal: Refusal?

    init(
        connection: Connection, pool: UpstreamPool, party: UpstreamCallerUsage,
        forwarding: consuming ForwardedRequest
    ) {
        self.connection = connection
        self.pool = pool
        self.party = party
        self.forwarding = forwarding
    }

    /// Begins the next request of the connection, after one whose response was relayed without a task. Such a
    /// request has used none of what is for streamed bodies and for failures.
    func renew(for party: UpstreamCallerUsage, as forwarding: consuming ForwardedRequest) {
        self.party = party
        self.forwarding = forwarding
        hasReceivedBytes = false
        isReusable = false
        bodySent = 0
        progress = .noConnection
    }

    /// Whether the same request may be sent again on another connection: either the upstream cannot have
    /// read a byte of it; or the request is safe (RFC 9110 §9.2.1) and no byte of a response was received.
    ///
    /// A PUT or DELETE is not repeated, although RFC 9110 §9.2.2 allows it: the second copy could undo the
    /// effect of another request in between.
    func maySendAgain(after failure: RelayError) -> Bool {
        guard case .upstream(let reason) = failure else { return false }
        if hasSentNothing { return true }
        return reason == .closed && !hasReceivedBytes && isRepeatable
    }

    /// Whether the request may be sent a second time if the connection closes before the response begins.
    var isRepeatable: Bool {
        connection.method.isRepeatable && connection.request.isBodyWhole && forwarding.observer == nil
    }

    /// Goes on from `progress`.
    func run(on stream: Stream) async throws(RelayError) {
        switch progress {
        case .noConnection, .connected:
            try begin(on: stream)
            try await receive(from: stream)
        case .begun: try await receive(from: stream)
        case .received(let input):
            defer { pool.loop.buffers.put(input) }
            try await receiveHead(from: stream, into: input)
            try await relayAnswer(from: stream, input: input)
        case .hasHead(let input):
            defer { pool.loop.buffers.put(input) }
            try await relayAnswer(from: stream, input: input)
        case .begunAnswer(let input, let length):
            defer { pool.loop.buffers.put(input) }
            try await relayWholeAnswer(of: length, in: input, from: stream)
        case .answered(let input):
            defer { pool.loop.buffers.put(input) }
            await sendRest(of: input, from: stream)
        case .failed(let failure): throw failure
        }
    }

    /// Receives the response to a request that was sent, or goes on sending.
    private func receive(from stream: Stream) async throws(RelayError) {
        guard unsent == nil, connection.request.isBodyWhole else {
            let input = pool.loop.buffers.take()
            defer { pool.loop.buffers.put(input) }
            return try await runUploading(on: stream, input: input)
        }
        // The upstream needs some time: reading at once would be a system call for nothing, and a buffer held
        // meanwhile would be a cold one when the response comes.
        connection.releaseEmptyInput()
        do throws(Stream.StreamError) {
            try await stream.untilInput()
        } catch {
            throw .upstream(error)
        }
        let input = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(input) }
        try await receiveHead(from: stream, into: input)
        try await relayAnswer(from: stream, input: input)
    }

    /// Sends the head and the part of a held body that fits into the buffer, as far as the socket accepts
    /// it without waiting. The rest stays in `unsent`.
    private func begin(on stream: Stream) throws(RelayError) {
        hasSentNothing = false
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
        let output = pool.loop.buffers.take()
        forwarding.writeHead(of: &connection.request, to: output)
        guard !output.isTruncated else {
            pool.loop.buffers.put(output)
            throw .refused(
                Refusal(.tooLarge, detail: "with what is added for the upstream, the head is too large"))
        }
        let body = connection.request.body
        bodySent = body.isEmpty ? 0 : body.withUnsafeBytes { output.append($0) }
        let began = EventLoop.nanoseconds()
        switch stream.writeAtOnce(output) {
        case .begun: break
        case .nothingSent(let failure):
            hasSentNothing = true
            pool.loop.buffers.put(output)
            throw .upstream(failure)
        // An upstream that refuses a body responds and closes; the response may be readable.
        case .failed: hasUploadFailed = true
        }
        connection.didBeginUpstream(at: began)
        if connection.request.isBodyWhole { forwarding.observer?.requestMayHaveBeenProcessed() }
        guard hasUploadFailed || (output.isEmpty && bodySent == body.count) else { return unsent = output }
        pool.loop.buffers.put(output)
    }

    // MARK: The answer

    /// Reads heads until that of a final response. Source: RFC 9110 §15.2.
    func receiveHead(from stream: Stream, into input: Buffer) async throws(RelayError) {
        while true {
            do throws(Refusal) {
                while !input.isEmpty {
                    let before = input.count
                    if try receivedHead(in: input) { return }
                    if input.count == before { break }
                }
            } catch {
                throw .malformed(error.detail)
            }
            do throws(Stream.StreamError) {
                guard try await stream.read(into: input) > 0 else { throw .closed }
                hasReceivedBytes = true
            } catch {
                throw .upstream(error)
            }
        }
    }

    /// Removes the next head from `input`; true if it is that of a final response. False if it is an interim
    /// one, or not complete: then `input` is as it was.
    private func receivedHead(in input: Buffer) throws(Refusal) -> Bool {
        guard
            let length = try parser.parse(
                input.span, answeringHEAD: connection.isHEAD, into: &connection.upstreamResponse)
        else { return false }
        input.take(length)
        if forwarding.crossOriginFields == .removed { connection.upstreamResponse.removeCrossOriginFields() }
        pool.didAnswer(from: generation)
        let status = connection.upstreamResponse.status
        if status == 101 { throw Refusal(.malformed, detail: "it switched protocols unasked") }
        guard status >= 200 else { return false }
        connection.didEndUpstream()
        return true
    }

    private static let tooLargeHead = "its head is too large with what is added to it"

    /// Throws if the response's head does not fit. After that, the client has part of a response, and a
    /// failure ends both connections.
    func relayAnswer(from stream: Stream, input: Buffer) async throws(RelayError) {
        let framing = connection.upstreamResponse.framing
        guard beginAnswer(framing) else { throw .malformed(UpstreamExchange.tooLargeHead) }
        defer { endTransfer() }
        reportHead()
        if case .length(let length) = framing, length <= input.count {
            reportBody(of: length, in: input)
            return try await relayWholeAnswer(of: length, in: input, from: stream)
        }
        var client = ClientPresence.listens
        var body = UpstreamBodyReader(framing)
        let piece = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(piece) }
        do {
            while !body.isAtEnd {
                let count = try body.take(from: input, into: piece)
                if count > 0 {
                    forwarding.observer?.didRead(piece.span)
                    if client == .listens, connection.answeredBytes > UpstreamExchange.longAnswer {
                        beginTransfer(.download, over: stream)
                    }
                    try await pass(piece, to: &client)
                } else if !body.isAtEnd {
                    if client == .listens { try await flush(to: &client) }
                    stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
                    if try await stream.read(into: input) == 0 { try body.didClose() }
                }
            }
            forwarding.observer?.didEnd()
            if client == .listens { try await connection.finishAnswer() }
        } catch {
            connection.didFailToDeliver(because: UpstreamExchange.failure(within: error))
            connection.answer = .aborted
            return stream.close()
        }
        if client == .isGone { connection.answer = .aborted }
        didRelay(unreadBytes: input.count)
    }

    /// Why a response ends that has begun, if nothing is known to be wrong with the client.
    private static func failure(within error: any Error) -> DeliveryFailure {
        switch error {
        case let refusal as Refusal: refusal.code == .upstreamFailed ? .upstreamTruncated : .upstreamInvalid
        case Stream.StreamError.timedOut: .streamIdle
        default: .upstreamTruncated
        }
    }

    private func reportHead() {
        guard let observer = forwarding.observer else { return }
        observer.didBegin(
            status: connection.upstreamResponse.status,
            fields: UpstreamResponseFields(connection.upstreamResponse))
    }

    private func reportBody(of length: Int, in input: Buffer) {
        guard let observer = forwarding.observer else { return }
        observer.didRead(input.span.extracting(0..<length))
        observer.didEnd()
    }

    /// The same for a response whose body arrived together with its head, as most small ones do: it is copied
    /// once, and not waited for. The observer has it already.
    private func relayWholeAnswer(
        of length: Int, in input: Buffer, from stream: Stream
    ) async throws(RelayError) {
        if !connection.appendIfRoom(input, upTo: length) {
            do {
                try await connection.write(input, upTo: length)
            } catch {
                connection.answer = .aborted
                // As if the client had gone while the response came: an observer has it all.
                guard forwarding.observer?.wantsRest == true else { return stream.close() }
                return didRelay(unreadBytes: input.count)
            }
        }
        await sendRest(of: input, from: stream)
    }

    /// Sends the output, which ends with the whole response.
    private func sendRest(of input: Buffer, from stream: Stream) async {
        do {
            if !connection.finishIfReady() { try await connection.finishAnswer() }
        } catch {
            connection.answer = .aborted
            guard forwarding.observer?.wantsRest == true else { return stream.close() }
        }
        didRelay(unreadBytes: input.count)
    }

    /// Decides whether the upstream connection may carry another request; `unreadBytes` came after the
    /// response.
    private func didRelay(unreadBytes: Int) {
        isReusable =
            connection.upstreamResponse.keepsAlive && unreadBytes == 0 && !isUploading && !hasUploadFailed
    }

    private enum ClientPresence { case listens, isGone }

    /// Bytes of a response after which the client's speed counts: a shorter one mostly fits into the
    /// socket.
    private static let longAnswer = 32 << 10

    /// Registers a transfer: from now on, the client's speed determines how long it holds the upstream
    /// connection.
    func beginTransfer(_ direction: ClientTransfer.Direction, over upstream: Stream) {
        guard transfer == nil else { return }
        let transfer = ClientTransfer(direction, of: self, over: upstream)
        self.transfer = transfer
        pool.add(transfer)
    }

    func endTransfer() {
        guard let transfer else { return }
        pool.remove(transfer)
        self.transfer = nil
    }

    /// Sends `piece` to the client and clears it. If the client has disconnected, throws unless the
    /// observer wants the rest of the response.
    private func pass(_ piece: Buffer, to client: inout ClientPresence) async throws(Stream.StreamError) {
        defer { piece.clear() }
        guard client == .listens else { return try checkWanted() }
        do {
            try await connection.write(piece, upTo: piece.count)
        } catch {
            guard forwarding.observer?.wantsRest == true else { throw error }
            client = .isGone
            endTransfer()
        }
    }

    private func flush(to client: inout ClientPresence) async throws(Stream.StreamError) {
        do {
            try await connection.flush()
        } catch {
            guard forwarding.observer?.wantsRest == true else { throw error }
            client = .isGone
            endTransfer()
        }
    }

    private func checkWanted() throws(Stream.StreamError) {
        guard forwarding.observer?.wantsRest == true else { throw .closed }
    }

    private func beginAnswer(_ framing: UpstreamResponse.Framing) -> Bool {
        let status = connection.upstreamResponse.status
        let answerFraming: ResponseFraming =
            switch framing {
            case .none where connection.upstreamResponse.hasBody: .length(0)
            // Source: RFC 9110 §8.6.
            case .none where status == 204: .bodyless
            case .none: connection.upstreamResponse.declaredLength.map { .bodylessOfLength($0) } ?? .bodyless
            case .length(let length): .length(length)
            case .chunked, .untilClose: .chunked
            }
        let hasDate = connection.upstreamResponse.hasDate
        return connection.begin(status: status, framing: answerFraming, hasDate: hasDate) { output in
            connection.upstreamResponse.writeFields(to: output)
            output.append(forwarding.addedToAnswer)
        }
    }
}

/// How far a request has been forwarded.
enum UpstreamProgress {
    case noConnection
    /// There is a connection, and no byte was sent on it.
    case connected
    /// The request was sent, or its rest waits to be sent; nothing of the response was read.
    case begun
    /// The buffer holds the beginning of the response.
    case received(Buffer)
    /// The response's head was parsed, and the buffer holds what followed it.
    case hasHead(Buffer)
    /// The connection's output holds the response's head, and the buffer begins with a whole body of that
    /// length.
    case begunAnswer(Buffer, length: Int)
    /// The connection's output holds the whole response, and the buffer what followed it.
    case answered(Buffer)
    case failed(UpstreamExchange.RelayError)
}

/// What is sent when the loop's turn has come to it.
private enum LateSend { case request, response }

/// Forwarding without a task: the request is sent in the same turn of the loop, and a callback relays a
/// response that arrives whole. In every other case the connection's task takes over, where
/// ``UpstreamExchange/progress`` says.
extension UpstreamExchange: StreamWaiter, LateSender {
    /// Sends the request on an idle connection, later in this turn; see
    /// ``Exchange/forward(_:to:reportingTo:)``.
    func start(reportingTo observer: any ForwardObserver) {
        self.observer = observer
        connection.releaseEmptyInput()
        lateSend = .request
        pool.loop.sendLate(self)
    }

    private func sendRequest() {
        guard let taken = pool.takeIdle(for: party, by: idleCheck) else {
            return connection.resumeTask(with: .relay(self))
        }
        self.taken = taken
        generation = taken.generation
        progress = .connected
        do throws(RelayError) {
            try begin(on: taken.stream)
        } catch {
            return giveToTask(.failed(error))
        }
        progress = .begun
        guard unsent == nil, !hasUploadFailed else { return connection.resumeTask(with: .relay(self)) }
        awaitResponse(on: taken.stream)
    }

    /// What must be known of the idle connection. If it turns out to be closed, the outcome of a request with
    /// an `Idempotency-Key` is unknown, and its copies are refused: so the socket is asked right before.
    private var idleCheck: IdleCheck {
        if isRepeatable { return .lastPoll }
        return forwarding.observer == nil ? .lastPollIfRecent : .socket
    }

    func sendNow() {
        pool.loop.charged = connection.stream.share
        switch lateSend {
        case .request: sendRequest()
        case .response: sendResponse()
        }
    }

    private func awaitResponse(on stream: Stream) {
        // The poller does not see what OpenSSL holds.
        guard !stream.hasBufferedInput, stream.awaitInput(for: self, called: .atOnce) else {
            return giveToTask(.begun)
        }
    }

    private func giveToTask(_ progress: UpstreamProgress) {
        self.progress = progress
        connection.resumeTask(with: .relay(self))
    }

    func didWake(stream: Stream, by wake: Stream.Wake) {
        switch wake {
        case .timedOut: return giveToTask(.failed(.upstream(.timedOut)))
        case .closed: return giveToTask(.failed(.upstream(.closed)))
        case .ready: break
        }
        let loop = pool.loop
        loop.beginCallback()
        loop.charged = connection.stream.share
        relayAtOnce(from: stream)
        loop.endCallback()
        // Each response that waits has a buffer.
        loop.sendIfDue()
    }

    private func relayAtOnce(from stream: Stream) {
        let input = pool.loop.buffers.take()
        switch stream.readIfReady(into: input) {
        case .done: hasReceivedBytes = true
        case .wantsRead, .wantsWrite:
            pool.loop.buffers.put(input)
            return awaitResponse(on: stream)
        case .ended:
            pool.loop.buffers.put(input)
            return giveToTask(.failed(.upstream(.closed)))
        case .failed(let failure):
            pool.loop.buffers.put(input)
            return giveToTask(.failed(.upstream(failure)))
        }
        do throws(Refusal) {
            guard try receivedHead(in: input) else { return giveToTask(.received(input)) }
        } catch {
            pool.loop.buffers.put(input)
            return giveToTask(.failed(.malformed(error.detail)))
        }
        guard case .some(let length) = arrivedLength(in: input) else { return giveToTask(.hasHead(input)) }
        guard beginAnswer(connection.upstreamResponse.framing) else {
            pool.loop.buffers.put(input)
            return giveToTask(.failed(.malformed(UpstreamExchange.tooLargeHead)))
        }
        reportHead()
        reportBody(of: length, in: input)
        // A body that filled its buffer does not fit behind what the gateway adds to the head.
        guard length == 0 || connection.appendIfRoom(input, upTo: length) else {
            return giveToTask(.begunAnswer(input, length: length))
        }
        // Bytes after the response are kept until it is decided that the connection is not used again.
        guard input.isEmpty else { return giveToTask(.answered(input)) }
        pool.loop.buffers.put(input)
        lateSend = .response
        pool.loop.sendLate(self)
    }

    /// Sends the response, which the connection's output holds whole; nothing came after it.
    private func sendResponse() {
        guard connection.finishIfReady() else { return giveToTask(.answered(pool.loop.buffers.take())) }
        didRelay(unreadBytes: 0)
        finish()
    }

    /// The length of a response's body that `input` holds whole; nil if more is to come.
    private func arrivedLength(in input: Buffer) -> Int? {
        switch connection.upstreamResponse.framing {
        case .none: 0
        case .length(let length) where length <= input.count: length
        case .length, .chunked, .untilClose: nil
        }
    }

    private func finish() {
        guard let taken, let observer else { return }
        self.taken = nil
        self.observer = nil
        // Its lines are shared with the next request's as long as one holds them, and its observer may have
        // recorded a body.
        forwarding.added = []
        if forwarding.observer != nil { forwarding.observer = nil }
        if forwarding.inspector != nil { forwarding.inspector = nil }
        pool.finish(taken, of: party, isReusable: isReusable)
        if let rest = observer.didForward(connection) {
            return connection.resumeTask(with: .finish(rest))
        }
        connection.spareExchange = self
        connection.didEndAtOnce()
    }

    /// Continues on the connection's task.
    func goOn() async {
        let observer = observer
        self.observer = nil
        do throws(Refusal) {
            try await pool.run(self, on: taken.take() ?? pool.takeIdle(for: party, by: .socket))
            if let rest = observer?.didForward(connection) { await rest() }
        } catch {
            await observer?.didFail(error, on: connection)
        }
    }
}

/// The read position in the body of an upstream's response.
struct UpstreamBodyReader {
    private var body: BodyReader
    private var endsWithConnection: Bool
    private var didEnd = false

    init(_ framing: UpstreamResponse.Framing) {
        endsWithConnection = framing == .untilClose
        body =
            switch framing {
            case .none, .untilClose: BodyReader()
            case .length(let length): BodyReader(.length(length), allowance: 0)
            case .chunked: BodyReader(.chunked, allowance: 0)
            }
    }

    var isAtEnd: Bool { endsWithConnection ? didEnd : body.isAtEnd }

    mutating func take(from input: Buffer, into piece: Buffer) throws(Refusal) -> Int {
        guard endsWithConnection else { return try body.take(from: input, into: piece) }
        let count = piece.append(input.filled)
        input.take(count)
        return count
    }

    /// Called at the end of the connection, which ends the body or cuts it short.
    mutating func didClose() throws(Refusal) {
        guard endsWithConnection else { throw Refusal(.upstreamFailed, detail: "the answer was cut short") }
        didEnd = true
    }
}
