import CountersignWire

/// A request that the upstream does not take at once: a body that streams, or a held one that fills the
/// socket. The answer is awaited meanwhile, because an upstream may answer before it has read everything, and
/// stop reading. Source: RFC 9112 §9.5.
extension Relay {
    /// Sends `unsent`, then what is left of the body, and receives the answer at the same time.
    func runUploading(on stream: Stream, _ input: Buffer) async throws(Failure) {
        isUploading = true
        async let upload: Void = upload(to: stream)
        do throws(Failure) {
            try await receiveHead(from: stream, into: input)
            try await relayAnswer(from: stream, input)
        } catch {
            // A refusal closes the connection; it is then the cause, and not the upstream.
            let refusal = uploadRefusal
            abandonUpload(to: stream)
            await upload
            if let refusal { throw .refused(refusal) }
            throw error
        }
        if isUploading { abandonUpload(to: stream) }
        await upload
    }

    /// Reads the beginning of a body that streams: as much as one buffer takes.
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

    /// Ends a body on its way so that others get its connection; the upstream sees it cut off.
    func endUpload(over stream: Stream) {
        guard isUploading else { return }
        uploadRefusal = Refusal(
            .unavailable, "others waited for \(pool.target.host) while this body came slowly", retryAfter: 1)
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
            // The upstream stopped reading. Its answer, if it gave one, is read by the other side of this exchange.
            hasUploadFailed = true
        }
    }

    private func uploadHeldBody(to stream: Stream) async throws(Stream.Failure) {
        let body = connection.request.body
        let piece = pool.loop.buffers.take()
        defer { pool.loop.buffers.put(piece) }
        while bodySent < body.count {
            bodySent += body.withUnsafeBytes { piece.append(UnsafeRawBufferPointer(rebasing: $0[bodySent...])) }
            try await send(piece, to: stream)
        }
    }

    /// Always one piece behind, so that the inspector has seen all of the body before the upstream has. A
    /// refusal closes the upstream's connection before the body was complete.
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
            // The upstream is not to blame for the time that the client takes.
            stream.deadline = .max
            guard try await connection.readBody(into: next) > 0 else { break }
            received += next.count
            forwarding.inspector?.inspect(next.span)
            try await send(held, to: stream)
            swap(&held, &next)
        }
        endTransfer()
        try forwarding.inspector?.finish()
        forwarding.observer?.mayBeDone()
        try await send(held, to: stream)
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
    }

    private func send(_ piece: Buffer, to stream: Stream) async throws(Stream.Failure) {
        guard !piece.isEmpty else { return }
        stream.deadline = pool.loop.seconds + Int64(pool.deadlines.upstreamAnswer)
        try await stream.write(piece)
    }
}
