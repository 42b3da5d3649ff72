import CountersignWire

/// One request on its way to the upstream, and the answer on its way back. Confined to its loop.
final class Relay: @unchecked Sendable {
    /// What can go wrong before the answer begins.
    enum Failure: Error {
        case upstream(Stream.Failure)
        /// The answer cannot be read.
        case malformed(String)
        /// The request's own fault, found while its body streamed.
        case refused(Refusal)
    }

    let connection: Connection
    let pool: UpstreamPool
    let party: UpstreamParty
    let forwarding: Forwarding
    private var parser = ResponseParser()
    private var hasHeard = false
    /// The connection failed before its socket had taken a byte of the request.
    private(set) var hasSentNothing = false
    /// The answer came to its end, and the connection may serve another request.
    private(set) var isReusable = false

    /// While the client decides how long the upstream connection is held.
    private var transfer: ClientTransfer?

    // Of a request that is not sent at once; see Relay+Upload.swift.
    /// The beginning of a body that streams.
    var firstPart: Buffer?
    /// Bytes of a streamed body that came from the client.
    var received = 0
    /// What the socket did not take at once.
    var unsent: Buffer?
    /// Bytes of a held body that were sent or stand in `unsent`.
    var bodySent = 0
    var isUploading = false
    var hasUploadFailed = false
    var uploadRefusal: Refusal?

    init(connection: Connection, pool: UpstreamPool, party: UpstreamParty, forwarding: consuming Forwarding) {
        self.connection = connection
        self.pool = pool
        self.party = party
        self.forwarding = forwarding
    }

    /// Whether the same request may be sent once more, on another connection. Either the upstream cannot have
    /// read a byte of it; or it is safe (RFC 9110 §9.2.1) and no byte came back.
    ///
    /// A PUT or DELETE is not repeated, although RFC 9110 §9.2.2 would allow it: another request may have
    /// come in between, whose effect the second copy would undo.
    func maySendAgain(after failure: Failure) -> Bool {
        guard case .upstream(let reason) = failure else { return false }
        if hasSentNothing { return true }
        let request = connection.request
        guard reason == .closed, request.isBodyWhole, !hasHeard, forwarding.observer == nil else { return false }
        return ["GET", "HEAD", "OPTIONS"].contains { request.matches(request.method, $0) }
    }

    func run(on stream: Stream) async throws(Failure) {
        hasSentNothing = false
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
        try begin(on: stream)
        let input = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(input) }
        if unsent == nil, connection.request.isBodyWhole {
            try await receiveHead(from: stream, into: input)
            try await relayAnswer(from: stream, input)
        } else {
            try await runUploading(on: stream, input)
        }
    }

    /// Sends the head and, of a body that is held whole, what fits; all of it as far as the socket takes it without
    /// waiting. The rest is left in `unsent`.
    private func begin(on stream: Stream) throws(Failure) {
        let output = pool.loop.buffers.take()
        forwarding.writeHead(of: connection.request, to: output)
        guard !output.isTruncated else {
            pool.loop.buffers.put(output)
            throw .refused(Refusal(.tooLarge, "with what is added for the upstream, the head is too large"))
        }
        let body = connection.request.body
        bodySent = body.isEmpty ? 0 : body.withUnsafeBytes { output.append($0) }
        switch stream.writeAtOnce(output) {
        case .begun: break
        case .nothingSent(let failure):
            hasSentNothing = true
            pool.loop.buffers.put(output)
            throw .upstream(failure)
        // An upstream that refuses a body answers and closes; its answer may be there to be read.
        case .failed: hasUploadFailed = true
        }
        if connection.request.isBodyWhole { forwarding.observer?.mayBeDone() }
        guard hasUploadFailed || (output.isEmpty && bodySent == body.count) else { return unsent = output }
        pool.loop.buffers.put(output)
    }

    // MARK: The answer

    /// Reads heads until one that is final. Source: RFC 9110 §15.2.
    func receiveHead(from stream: Stream, into input: Buffer) async throws(Failure) {
        while true {
            do throws(Refusal) {
                if !input.isEmpty,
                    let length = try parser.parse(
                        input.span, answeringHEAD: connection.isHEAD, into: &connection.upstreamResponse)
                {
                    input.take(length)
                    let status = connection.upstreamResponse.status
                    pool.didAnswer()
                    if status == 101 { throw Refusal(.malformed, "it switched protocols unasked") }
                    if status >= 200 { return }
                    continue
                }
            } catch {
                throw .malformed(error.detail)
            }
            do throws(Stream.Failure) {
                guard try await stream.read(into: input) > 0 else { throw .closed }
                hasHeard = true
            } catch {
                throw .upstream(error)
            }
        }
    }

    /// Throws where the answer's head does not fit. From there on the client has part of an answer; failures
    /// end both connections.
    func relayAnswer(from stream: Stream, _ input: Buffer) async throws(Failure) {
        let framing = connection.upstreamResponse.framing
        guard beginAnswer(framing) else { throw .malformed("its head is too large with what is added to it") }
        defer { endTransfer() }
        if let observer = forwarding.observer {
            observer.didBegin(
                status: connection.upstreamResponse.status, fields: connection.upstreamResponse.keptFields)
        }
        var client = Client.listens
        var body = AnswerReader(framing)
        let piece = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(piece) }
        do {
            while !body.isAtEnd {
                let count = try body.take(from: input, into: piece)
                if count > 0 {
                    forwarding.observer?.didRead(piece.span)
                    if client == .listens, connection.answeredBytes > Relay.longAnswer {
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

    private enum Client { case listens, isGone }

    /// Bytes of an answer after which the client's speed counts: less mostly fits the socket.
    private static let longAnswer = 32 << 10

    /// From now on the client decides how long the upstream connection is held.
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

    /// Empties `piece`. A client that is gone ends the answer, unless somebody else wants the rest of it.
    private func pass(_ piece: Buffer, to client: inout Client) async throws(Stream.Failure) {
        defer { piece.clear() }
        guard client == .listens else { return try checkWanted() }
        do throws(Stream.Failure) {
            try await connection.write(piece, upTo: piece.count)
        } catch {
            guard forwarding.observer?.wantsRest == true else { throw error }
            client = .isGone
            endTransfer()
        }
    }

    private func flush(to client: inout Client) async throws(Stream.Failure) {
        do throws(Stream.Failure) {
            try await connection.flush()
        } catch {
            guard forwarding.observer?.wantsRest == true else { throw error }
            client = .isGone
            endTransfer()
        }
    }

    private func checkWanted() throws(Stream.Failure) {
        guard forwarding.observer?.wantsRest == true else { throw .closed }
    }

    private func beginAnswer(_ framing: UpstreamResponse.Framing) -> Bool {
        let response = connection.upstreamResponse
        let answerFraming: AnswerFraming =
            switch framing {
            case .none where response.hasBody: .length(0)
            // Source: RFC 9110 §8.6.
            case .none where response.status == 204: .bodyless
            case .none: response.declaredLength.map { .bodylessOfLength($0) } ?? .bodyless
            case .length(let length): .length(length)
            case .chunked, .untilClose: .chunked
            }
        return connection.begin(status: response.status, answerFraming, hasDate: response.hasDate) { output in
            response.writeFields(to: output)
            output.append(forwarding.addedToAnswer)
        }
    }
}
