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

    private let connection: Connection
    private let pool: UpstreamPool
    private let forwarding: Forwarding
    private var parser = ResponseParser()
    private var isUploading = false
    private var hasHeard = false

    init(connection: Connection, pool: UpstreamPool, forwarding: Forwarding) {
        self.connection = connection
        self.pool = pool
        self.forwarding = forwarding
    }

    /// Whether the same request may go out once more: it is idempotent, not a byte came back, and the body is still in
    /// hand. Source: RFC 9110 §9.2.2.
    var maySendAgain: Bool {
        let request = connection.request
        guard request.isBodyWhole, !hasHeard else { return false }
        return ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"].contains { request.matches(request.method, $0) }
    }

    func run(on stream: Stream) async throws(Failure) {
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
        let input = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(input) }
        try await sendHeldPart(to: stream)
        if connection.request.isBodyWhole {
            try await receiveHead(from: stream, into: input)
            await relayAnswer(from: stream, input)
        } else {
            try await runStreaming(on: stream, input)
        }
    }

    // MARK: The request

    /// The head, and the body where it is held whole.
    private func sendHeldPart(to stream: Stream) async throws(Failure) {
        let output = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(output) }
        forwarding.writeHead(of: connection.request, to: output)
        guard !output.isTruncated else {
            throw .refused(Refusal(.tooLarge, "with what is added for the upstream, the head is too large"))
        }
        if connection.request.isBodyWhole { forwarding.observer?.willSendLast() }
        let body = connection.request.body
        var sent = 0
        do throws(Stream.Failure) {
            repeat {
                sent += body.withUnsafeBytes { output.append(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
                try await stream.write(output)
            } while sent < body.count
        } catch {
            // An upstream that refuses a body early answers and closes; its answer may be there to be read.
            guard sent > 0, error == .closed else { throw .upstream(error) }
        }
    }

    /// Sends the body and receives the answer at once: an upstream may answer before it has read everything.
    private func runStreaming(on stream: Stream, _ input: Buffer) async throws(Failure) {
        isUploading = true
        async let upload = upload(to: stream)
        do throws(Failure) {
            try await receiveHead(from: stream, into: input)
        } catch {
            stream.close()
            if isUploading { connection.abandonBody() }
            if let refusal = await upload { throw .refused(refusal) }
            throw error
        }
        await relayAnswer(from: stream, input)
        if isUploading {
            stream.close()
            connection.abandonBody()
        }
        _ = await upload
    }

    /// Streams the body, always one piece behind, so that the inspector has seen all of it before the upstream has. A
    /// refusal closes the upstream's connection before the body was complete.
    private func upload(to stream: Stream) async -> Refusal? {
        var held = pool.loop.buffers.take()
        var next = pool.loop.buffers.take()
        defer {
            isUploading = false
            pool.loop.buffers.put(held)
            pool.loop.buffers.put(next)
        }
        do {
            while true {
                // The upstream is not to blame for the time that the client takes.
                stream.deadline = .max
                guard try await connection.readBody(into: next) > 0 else { break }
                forwarding.inspector?.inspect(next.span)
                try await send(held, to: stream)
                swap(&held, &next)
            }
            try forwarding.inspector?.finish()
            forwarding.observer?.willSendLast()
            try await send(held, to: stream)
            stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
            return nil
        } catch let refusal as Refusal {
            stream.close()
            return refusal
        } catch {
            return nil
        }
    }

    private func send(_ piece: Buffer, to stream: Stream) async throws {
        guard !piece.isEmpty else { return }
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
        try await stream.write(piece)
    }

    // MARK: The answer

    /// Reads heads until one that is final. Source: RFC 9110 §15.2.
    private func receiveHead(from stream: Stream, into input: Buffer) async throws(Failure) {
        while true {
            do throws(Refusal) {
                if !input.isEmpty,
                    let length = try parser.parse(
                        input.span, answeringHEAD: connection.isHEAD, into: &connection.upstreamResponse)
                {
                    input.take(length)
                    let status = connection.upstreamResponse.status
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

    /// From here on the client has part of an answer; failures end both connections.
    private func relayAnswer(from stream: Stream, _ input: Buffer) async {
        let framing = connection.upstreamResponse.framing
        beginAnswer(framing)
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
        if connection.upstreamResponse.keepsAlive, input.isEmpty, !isUploading {
            pool.giveBack(stream)
        } else {
            stream.close()
        }
    }

    private enum Client { case listens, isGone }

    /// Empties `piece`. A client that is gone ends the answer, unless somebody else wants the rest of it.
    private func pass(_ piece: Buffer, to client: inout Client) async throws(Stream.Failure) {
        defer { piece.clear() }
        guard client == .listens else { return try checkWanted() }
        do throws(Stream.Failure) {
            try await connection.write(piece, upTo: piece.count)
        } catch {
            guard forwarding.observer?.wantsRest == true else { throw error }
            client = .isGone
        }
    }

    private func flush(to client: inout Client) async throws(Stream.Failure) {
        do throws(Stream.Failure) {
            try await connection.flush()
        } catch {
            guard forwarding.observer?.wantsRest == true else { throw error }
            client = .isGone
        }
    }

    private func checkWanted() throws(Stream.Failure) {
        guard forwarding.observer?.wantsRest == true else { throw .closed }
    }

    private func beginAnswer(_ framing: UpstreamResponse.Framing) {
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
        connection.begin(status: response.status, answerFraming) { output in
            response.writeFields(to: output)
            output.append(forwarding.addedToAnswer)
        }
    }
}
