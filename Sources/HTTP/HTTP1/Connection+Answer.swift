import CountersignWire

/// How far the answer to the present request has come.
enum AnswerState {
    case none
    case sized(remaining: Int)
    case chunked
    /// HEAD, 204, 304: a head and nothing behind it.
    case bodyless
    case finished
    /// Cut in the middle: only closing tells the client.
    case aborted
}

/// How an answer's body is delimited.
enum AnswerFraming {
    case bodyless
    /// No body follows, yet the head says how long it would be. Source: RFC 9110 §8.6.
    case bodylessOfLength(Int)
    case length(Int)
    case chunked
}

extension Connection {
    func respond(_ answer: Answer) async {
        guard case .none = self.answer else { return }
        skipArrivedBody()
        let framing: AnswerFraming =
            switch answer.status {
            // Source: RFC 9110 §8.6.
            case 204, 304: .bodyless
            default: isHEAD ? .bodylessOfLength(answer.body.count) : .length(answer.body.count)
            }
        let hasBegun = begin(status: answer.status, framing) {
            for field in answer.fields { $0.appendField(field.name, field.value) }
        }
        guard hasBegun else { return self.answer = .aborted }
        do throws(Stream.Failure) {
            if case .sized = self.answer { try await write(answer.body) }
            try await finishAnswer()
        } catch {
            self.answer = .aborted
        }
    }

    /// Puts the head into the output, to leave with what follows. `fields` adds all but framing and connection.
    /// An answer has a `Date` of ours unless `hasDate` says that its fields bring one. Source: RFC 9110 §6.6.1.
    ///
    /// False where the head does not fit the output: then no answer has begun, and nothing of this one is
    /// sent. A cut head would let the client take the body for header lines.
    func begin(
        status: Int, _ framing: AnswerFraming, hasDate: Bool = false, fields: (Buffer) -> Void
    ) -> Bool {
        let output = takeOutput()
        answeredStatus = status
        output.append("HTTP/1.1 ")
        output.appendDecimal(status)
        output.append(" ")
        output.append(ReasonPhrase.of(status) ?? "Status")
        output.append("\r\n")
        if !hasDate { output.append(loop.dateLine) }
        fields(output)
        switch framing {
        case .bodyless: answer = .bodyless
        case .bodylessOfLength(let length):
            output.appendLength(length)
            answer = .bodyless
        case .length(let length):
            output.appendLength(length)
            answer = .sized(remaining: length)
        case .chunked where request.minorVersion == 1:
            output.append("Transfer-Encoding: chunked\r\n")
            answer = .chunked
        case .chunked:
            // HTTP/1.0 knows no chunks: the body ends where the connection does.
            answer = .sized(remaining: .max)
            abandonKeepAlive()
        }
        // Decided here and only here: what is announced is done.
        closesAfterAnswer = !keepsAlive
        if closesAfterAnswer { output.append("Connection: close\r\n") }
        output.append("\r\n")
        guard output.isTruncated else { return true }
        output.clear()
        answer = .none
        answeredStatus = nil
        closesAfterAnswer = false
        return false
    }

    func write(_ bytes: [UInt8]) async throws(Stream.Failure) {
        let piece = loop.buffers.take()
        defer { loop.buffers.put(piece) }
        var offset = 0
        while offset < bytes.count {
            piece.clear()
            offset += bytes.withUnsafeBytes { piece.append(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            try await write(piece, upTo: piece.count)
        }
    }

    /// Sends the first `count` bytes of `piece` as part of the body, and takes them from it.
    func write(_ piece: Buffer, upTo count: Int) async throws(Stream.Failure) {
        guard count > 0 else { return }
        answeredBytes += count
        switch answer {
        case .sized(let remaining):
            guard count <= remaining else { throw .closed }
            answer = .sized(remaining: remaining == .max ? .max : remaining - count)
            try await append(piece, count)
        case .chunked:
            let output = takeOutput()
            if output.space < 32 { try await flush() }
            output.appendHex(count)
            output.append("\r\n")
            try await append(piece, count)
            if output.space < 2 { try await flush() }
            output.append("\r\n")
        default: throw .closed
        }
    }

    /// Ends the body and sends what is left.
    func finishAnswer() async throws(Stream.Failure) {
        switch answer {
        case .sized(let remaining):
            guard remaining == 0 || remaining == .max else { throw .closed }
        case .chunked:
            let output = takeOutput()
            if output.space < 8 { try await flush() }
            output.append("0\r\n\r\n")
        case .bodyless: break
        default: throw .closed
        }
        try await flush()
        answer = .finished
    }

    /// Sends what has been put together.
    func flush() async throws(Stream.Failure) {
        guard let output, !output.isEmpty else { return }
        stream.writeDeadline = loop.seconds + Int64(deadlines.stall)
        try await stream.write(output)
        loop.buffers.put(output)
        self.output = nil
    }

    func sendContinue() async throws(Stream.Failure) {
        takeOutput().append("HTTP/1.1 100 Continue\r\n\r\n")
        try await flush()
    }

    private func append(_ piece: Buffer, _ count: Int) async throws(Stream.Failure) {
        var left = count
        while left > 0 {
            let moved = takeOutput().append(UnsafeRawBufferPointer(rebasing: piece.filled.prefix(left)))
            piece.take(moved)
            left -= moved
            if left > 0 { try await flush() }
        }
    }

    private func takeOutput() -> Buffer {
        if let output { return output }
        let buffer = loop.buffers.take()
        output = buffer
        return buffer
    }
}

extension UpstreamResponse {
    var hasDate: Bool { fields.contains { $0.name.count == 4 && matches($0.name, "date") } }
}
