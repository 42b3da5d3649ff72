import CountersignWire

/// A streamed body or a long response in progress: the client's speed determines how long it holds the
/// upstream connection. Confined to its loop.
final class ClientTransfer {
    enum Direction { case upload, download }

    /// Bytes a second below which the pool may end a transfer for parties that hold less. A body at a lower
    /// rate uses up its initial allowance; see ``BodyReader``.
    private static let slow = 32 << 10
    /// Bytes a second below which the pool may end a transfer of any party.
    private static let least = 4 << 10

    let party: UpstreamCallerUsage
    private let direction: Direction
    private unowned let relay: UpstreamExchange
    private let upstream: Stream
    /// Bytes a second, averaged over about four seconds. The initial value is just not slow.
    private(set) var rate = ClientTransfer.slow
    private var moved: Int
    private(set) var isEnding = false
    /// The transfer's index in its pool's list.
    var place = 0

    init(_ direction: Direction, of relay: UpstreamExchange, over upstream: Stream) {
        self.direction = direction
        self.relay = relay
        self.upstream = upstream
        party = relay.party
        moved = ClientTransfer.moved(direction, of: relay)
    }

    deinit { if isEnding { party.countEnding(-1) } }

    var isSlow: Bool { rate < ClientTransfer.slow }
    var hardlyMoves: Bool { !isEnding && rate < ClientTransfer.least }

    /// Updates the rate; called once a second. A second in which the gateway does not wait for the client
    /// does not lower it.
    func measure() {
        let total = ClientTransfer.moved(direction, of: relay)
        let gained = total - moved
        moved = total
        guard gained > rate || isAwaitingClient else { return }
        rate = (rate * 3 + max(0, gained)) / 4
    }

    /// Gives up the upstream connection: refuses an upload, cuts a download short.
    func end() {
        guard !isEnding else { return }
        isEnding = true
        party.countEnding(1)
        switch direction {
        case .upload: relay.endUpload(over: upstream)
        case .download:
            relay.pool.loop.counters?.add(.cutSlowReader)
            relay.connection.didFailToDeliver(because: .clientSlow)
            relay.connection.stream.close()
        }
    }

    private var isAwaitingClient: Bool {
        let client = relay.connection.stream
        return direction == .upload ? client.awaitsInput : client.awaitsOutput
    }

    private static func moved(_ direction: Direction, of relay: UpstreamExchange) -> Int {
        switch direction {
        case .upload: relay.received
        case .download: relay.connection.answeredBytes - relay.connection.stream.unsentBytes
        }
    }
}

/// Sends a request that does not fit into the socket at once: a streamed body, or a held body that fills
/// the socket. Reads the response at the same time, because an upstream may respond before it has read the
/// whole request, and stop reading. Source: RFC 9112 §9.5.
extension UpstreamExchange {
    /// Sends `unsent`, then the rest of the body, and receives the response at the same time.
    func runUploading(on stream: Stream, input: Buffer) async throws(RelayError) {
        isUploading = true
        async let upload: Void = upload(to: stream)
        do {
            try await receiveHead(from: stream, into: input)
            try await relayAnswer(from: stream, input: input)
        } catch {
            // A refusal of the upload closes the upstream connection, so that reading fails; report the
            // refusal, not that failure.
            let refusal = uploadRefusal
            abandonUpload(to: stream)
            await upload
            if let refusal { throw .refused(refusal) }
            throw error
        }
        if isUploading { abandonUpload(to: stream) }
        await upload
    }

    /// Reads the beginning of a streamed body, up to one buffer.
    func receiveFirstPart() async throws(Refusal) {
        let part = pool.loop.buffers.take()
        firstPart = part
        try await connection.readFirstPart(into: part)
    }

    func releaseFirstPart() {
        guard let part = firstPart else { return }
        firstPart = nil
        pool.loop.buffers.put(part)
    }

    /// Ends an upload so that another request gets its connection; the upstream sees the body cut short.
    func endUpload(over stream: Stream) {
        guard isUploading else { return }
        connection.didFailToDeliver(because: .clientSlow)
        uploadRefusal = Refusal(
            .unavailable, detail: "others waited for \(pool.target.host) while this body came slowly",
            retryAfter: 1)
        stream.close()
    }

    private func abandonUpload(to stream: Stream) {
        stream.close()
        if isUploading, !connection.request.isBodyWhole { connection.abandonBody() }
    }

    private func upload(to stream: Stream) async {
        defer {
            isUploading = false
            endTransfer()
            if let unsent { pool.loop.buffers.put(unsent) }
            unsent = nil
        }
        do {
            if let unsent { try await send(unsent, to: stream) }
            if connection.request.isBodyWhole {
                try await uploadHeldBody(to: stream)
            } else if !hasUploadFailed {
                try await streamBody(to: stream)
            }
        } catch let refusal as Refusal {
            uploadRefusal = refusal
            stream.close()
        } catch {
            // The upstream stopped reading. The exchange's other task reads its response, if there is one.
            hasUploadFailed = true
        }
    }

    private func uploadHeldBody(to stream: Stream) async throws(Stream.StreamError) {
        let body = connection.request.body
        let piece = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(piece) }
        while bodySent < body.count {
            bodySent += body.withUnsafeBytes {
                piece.append(UnsafeRawBufferPointer(rebasing: $0[bodySent...]))
            }
            try await send(piece, to: stream)
        }
    }

    /// Sends each piece only after the next was inspected, so that the inspector has seen the whole body
    /// before the upstream has. A refusal closes the upstream connection before the body is complete.
    private func streamBody(to stream: Stream) async throws {
        var held = firstPart ?? pool.loop.buffers.take()
        firstPart = nil
        var next = pool.loop.buffers.take()
        defer {
            pool.loop.buffers.put(held)
            pool.loop.buffers.put(next)
        }
        forwarding.inspector?.inspect(held.span)
        beginTransfer(.upload, over: stream)
        while true {
            // The upstream's deadline does not run while the gateway waits for the client.
            stream.deadline = .max
            guard try await connection.readBody(into: next) > 0 else { break }
            received += next.count
            forwarding.inspector?.inspect(next.span)
            try await send(held, to: stream)
            swap(&held, &next)
        }
        endTransfer()
        try forwarding.inspector?.finish()
        forwarding.observer?.requestMayHaveBeenProcessed()
        try await send(held, to: stream)
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
    }

    private func send(_ piece: Buffer, to stream: Stream) async throws(Stream.StreamError) {
        guard !piece.isEmpty else { return }
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
        try await stream.write(piece)
    }
}
