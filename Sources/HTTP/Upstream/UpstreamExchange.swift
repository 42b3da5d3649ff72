import CountersignWire

/// The forwarding of one request to the upstream, and of its response to the client. Confined to its loop.
final class UpstreamExchange: @unchecked Sendable {
    /// A failure before the response to the client begins.
    enum RelayError: Error {
        case upstream(Stream.StreamError)
        /// The upstream's response is malformed.
        case malformed(String)
        /// The request is refused, because of its head or of its body while it streamed.
        case refused(Refusal)
    }

    let connection: Connection
    let pool: UpstreamPool
    let party: UpstreamCallerUsage
    let forwarding: ForwardedRequest
    private var parser = ResponseParser()
    private var hasReceivedBytes = false
    /// Whether the connection failed before its socket accepted a byte of the request.
    private(set) var hasSentNothing = false
    /// Whether the response ended regularly and the connection may carry another request.
    private(set) var isReusable = false

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
        guard connection.request.isBodyWhole, forwarding.observer == nil else { return false }
        let request = connection.request
        return request.matches(request.method, text: "GET") || request.matches(request.method, text: "HEAD")
            || request.matches(request.method, text: "OPTIONS")
    }

    func run(on stream: Stream) async throws(RelayError) {
        hasSentNothing = false
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
        try begin(on: stream)
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
        let output = pool.loop.buffers.take()
        forwarding.writeHead(of: connection.request, to: output)
        guard !output.isTruncated else {
            pool.loop.buffers.put(output)
            throw .refused(
                Refusal(.tooLarge, detail: "with what is added for the upstream, the head is too large"))
        }
        let body = connection.request.body
        bodySent = body.isEmpty ? 0 : body.withUnsafeBytes { output.append($0) }
        switch stream.writeAtOnce(output) {
        case .begun: break
        case .nothingSent(let failure):
            hasSentNothing = true
            pool.loop.buffers.put(output)
            throw .upstream(failure)
        // An upstream that refuses a body responds and closes; the response may be readable.
        case .failed: hasUploadFailed = true
        }
        if connection.request.isBodyWhole { forwarding.observer?.requestMayHaveBeenProcessed() }
        guard hasUploadFailed || (output.isEmpty && bodySent == body.count) else { return unsent = output }
        pool.loop.buffers.put(output)
    }

    // MARK: The answer

    /// Reads heads until that of a final response. Source: RFC 9110 §15.2.
    func receiveHead(from stream: Stream, into input: Buffer) async throws(RelayError) {
        while true {
            do throws(Refusal) {
                if !input.isEmpty,
                    let length = try parser.parse(
                        input.span, answeringHEAD: connection.isHEAD, into: &connection.upstreamResponse)
                {
                    input.take(length)
                    let status = connection.upstreamResponse.status
                    pool.didAnswer()
                    if status == 101 { throw Refusal(.malformed, detail: "it switched protocols unasked") }
                    if status >= 200 { return }
                    continue
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

    /// Throws if the response's head does not fit. After that, the client has part of a response, and a
    /// failure ends both connections.
    func relayAnswer(from stream: Stream, input: Buffer) async throws(RelayError) {
        let framing = connection.upstreamResponse.framing
        guard beginAnswer(framing) else { throw .malformed("its head is too large with what is added to it") }
        defer { endTransfer() }
        if let observer = forwarding.observer {
            observer.didBegin(
                status: connection.upstreamResponse.status, fields: connection.upstreamResponse.keptFields)
        }
        if case .length(let length) = framing, length <= input.count {
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
            connection.answer = .aborted
            return stream.close()
        }
        if client == .isGone { connection.answer = .aborted }
        isReusable =
            connection.upstreamResponse.keepsAlive && input.isEmpty && !isUploading && !hasUploadFailed
    }

    /// The same for a response whose body arrived together with its head, as most small ones do: it is copied
    /// once, and not waited for.
    private func relayWholeAnswer(
        of length: Int, in input: Buffer, from stream: Stream
    ) async throws(RelayError) {
        forwarding.observer?.didRead(input.span.extracting(0..<length))
        forwarding.observer?.didEnd()
        do {
            if !connection.appendIfRoom(input, upTo: length) {
                try await connection.write(input, upTo: length)
            }
            if !connection.finishIfReady() { try await connection.finishAnswer() }
        } catch {
            connection.answer = .aborted
            // As if the client had gone while the response came: an observer has it all.
            guard forwarding.observer?.wantsRest == true else { return stream.close() }
        }
        isReusable =
            connection.upstreamResponse.keepsAlive && input.isEmpty && !isUploading && !hasUploadFailed
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
        let response = connection.upstreamResponse
        let answerFraming: ResponseFraming =
            switch framing {
            case .none where response.hasBody: .length(0)
            // Source: RFC 9110 §8.6.
            case .none where response.status == 204: .bodyless
            case .none: response.declaredLength.map { .bodylessOfLength($0) } ?? .bodyless
            case .length(let length): .length(length)
            case .chunked, .untilClose: .chunked
            }
        return connection.begin(status: response.status, framing: answerFraming, hasDate: response.hasDate) {
            output in
            response.writeFields(to: output)
            output.append(forwarding.addedToAnswer)
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
