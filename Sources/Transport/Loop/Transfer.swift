import CCurl
import CountersignTrust

/// One request in progress and its response. Confined to the transport's thread, except `answer` and
/// `upload`, which have their own locks.
final class Transfer: @unchecked Sendable {
    let request: OutgoingRequest
    let answer = ResponseChannel()
    let progress: @Sendable (TransferProgress) -> Void
    private weak var loop: TransferLoop?

    /// Set while the transfer runs.
    private(set) var handle: EasyHandle?
    /// Set once the handshake of a new connection begins.
    private var judge: HandshakeJudge?
    /// What a judge needs.
    private var pool: ConnectionPool?

    private var upload: UploadChannel?
    private var pump: Task<Void, Never>?
    /// Bytes sent of a body in memory.
    private var sentBytes = 0

    private var times = TransferTimeouts()
    private let turn: LoopTurn
    /// Whether sending the request has begun on an established connection.
    private var hasBegun = false
    private var isAnswered = false
    private var isReaderSlow = false
    /// Whether the reader has not been woken yet for received parts of the response.
    private var hasUnreportedData = false
    /// Why a callback ended the transfer.
    private var ownCause: TransportError.Cause?
    private var head: [UInt8] = []
    private var lastProgress = TransferProgress()

    init(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void,
        loop: TransferLoop
    ) {
        self.request = request
        self.progress = progress
        self.loop = loop
        turn = loop.turn
    }

    // MARK: life

    func queue(_ limits: TransferTimeouts.Limits) {
        times = TransferTimeouts(limits, queuedAt: turn.time)
        turn.note(deadline)
    }

    /// The next deadline and its phase.
    var deadline: TransferTimeouts.Deadline {
        // The transfer waits for the caller, not for the server.
        times.deadline(waitsForServer: !isReaderSlow && upload?.isStarved != true)
    }

    /// Takes a handle.
    func begin(in generation: ConnectionPool) throws(TransportError) -> EasyHandle {
        let handle = try generation.makeHandle()
        self.handle = handle
        pool = generation
        times.begin(at: turn.time)
        turn.note(deadline)
        try handle.configure(for: request, transfer: self)
        try prepareBody(handle)
        return handle
    }

    /// The judge of the connection that libcurl opens for this transfer.
    func makeJudge() -> HandshakeJudge? {
        judge = pool.map { $0.makeJudge(of: request.origin.host) }
        return judge
    }

    /// Releases all resources and notifies the reader.
    func end(_ result: Result<Void, TransportError>, in generation: ConnectionPool) {
        pump?.cancel()
        upload?.close("the request has ended")
        handle?.forgetRequest()
        // The handle of a failed transfer may have unfinished work, such as a name lookup: it is not reused.
        if let handle, case .success = result { generation.recycle(handle) }
        handle = nil
        pool = nil
        answer.finish(result)
    }

    /// The fate of the request if the transfer ends now.
    var fate: TransportError.Fate { isAnswered ? .brokenOff : hasBegun ? .outcomeUnknown : .notSent }

    /// Resumes both directions; a callback with nothing to do pauses its direction again.
    func resume() {
        guard let handle else { return }
        isReaderSlow = false
        times.lastActivity = turn.time
        turn.note(deadline)
        curl_easy_pause(handle.curl, CURLPAUSE_CONT)
    }

    // MARK: the request

    private func prepareBody(_ handle: EasyHandle) throws(TransportError) {
        switch request.body {
        case .none:
            if request.announcesEmptyBody { try handle.send(.bytes(0)) }
        case .bytes(let bytes): try handle.send(.bytes(bytes.count))
        case .replayable(let body): try prepareStream(length: body.length, on: handle)
        case .once(let body):
            guard !body.isUsedUp else { throw TransportError(.bodyUsedUp, fate: .notSent) }
            try prepareStream(length: body.length, on: handle)
        }
    }

    private func prepareStream(length: BodyLength, on handle: EasyHandle) throws(TransportError) {
        upload = UploadChannel(length) { [weak self, weak loop] in
            if let self, let loop { loop.resume(self) }
        }
        try handle.send(length)
    }

    /// Called when the connection is established, before the request's first byte. False ends the transfer.
    ///
    /// libcurl itself sends a request again if a reused connection closes without a response. The server may
    /// have received the first copy, and the second one has the same nonce, so a second call ends the
    /// transfer.
    func beginRequest() -> Bool {
        guard !hasBegun else {
            ownCause = .connectionLost("the connection had been closed by the server")
            return false
        }
        hasBegun = true
        times.isConnected = true
        times.lastActivity = turn.time
        turn.note(deadline)
        return startStream()
    }

    private func startStream() -> Bool {
        guard let upload else { return true }
        let write: BodyWriter
        switch request.body {
        case .none, .bytes: return true
        case .replayable(let body): write = body.write
        case .once(let body):
            guard let only = body.take() else {
                ownCause = .bodyUsedUp
                return false
            }
            write = only
        }
        pump = Task.detached {
            do {
                try await write { piece in try await upload.push(piece) }
                upload.close(nil)
            } catch {
                upload.close("its stream failed: \(error)")
            }
        }
        return true
    }

    /// Fills `room` with the next bytes of the body.
    func supply(_ room: UnsafeMutableRawBufferPointer) -> Int {
        guard let upload else {
            guard case .bytes(let bytes) = request.body else { return 0 }
            let count = min(room.count, bytes.count - sentBytes)
            bytes[sentBytes..<(sentBytes + count)].withUnsafeBytes { room.copyMemory(from: $0) }
            sentBytes += count
            return count
        }
        switch upload.take(into: room) {
        case .bytes(let count): return count
        case .nothingYet: return Int(CURL_READFUNC_PAUSE)
        case .end: return 0
        case .failed(let detail):
            ownCause = .body(detail)
            return Int(CURL_READFUNC_ABORT)
        }
    }

    // MARK: the answer

    /// Far larger than any legitimate head.
    private static let longestHead = 262_144
    /// Most heads are shorter.
    private static let usualHead = 1_024

    /// Receives the head line by line. Skips interim responses and trailers.
    func takeHead(_ line: UnsafeRawBufferPointer) -> Int {
        times.lastActivity = turn.time
        guard !isAnswered else { return line.count }
        guard head.count + line.count <= Transfer.longestHead else {
            ownCause = .malformedAnswer("its head has over \(Transfer.longestHead) bytes")
            return 0
        }
        if head.isEmpty { head.reserveCapacity(Transfer.usualHead) }
        head += line
        // The empty line that ends the head.
        guard line.last == 0x0A, line.count == 1 || (line.count == 2 && line[0] == 0x0D) else {
            return line.count
        }
        defer { head = [] }
        guard let read = ResponseHeadParser.parse(head) else {
            ownCause = .malformedAnswer("its head")
            return 0
        }
        guard read.status >= 200 else { return line.count }
        isAnswered = true
        answer.deliver(read)
        noteUnreportedData()
        return line.count
    }

    private func noteUnreportedData() {
        guard !hasUnreportedData else { return }
        hasUnreportedData = true
        turn.unreported.append(self)
    }

    /// At the end of a turn of the loop. A transfer that has ended meanwhile has woken its reader.
    func wakeReader() {
        hasUnreportedData = false
        if handle != nil { answer.wake() }
    }

    func takeBody(_ piece: UnsafeRawBufferPointer) -> Int {
        guard !piece.isEmpty else { return 0 }
        times.lastActivity = turn.time
        switch answer.deliver(piece) {
        case .accepted:
            noteUnreportedData()
            return piece.count
        case .full:
            isReaderSlow = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
    }

    func note(_ progress: TransferProgress) {
        guard progress != lastProgress else { return }
        if progress.sent != lastProgress.sent || progress.received != lastProgress.received {
            times.lastActivity = turn.time
        }
        lastProgress = progress
        self.progress(progress)
    }

    /// The cause for libcurl's code.
    func outcome(of code: CURLcode, reachability: NetworkReachability) -> Result<Void, TransportError> {
        if let ownCause { return .failure(TransportError(ownCause, fate: fate)) }
        if code == CURLE_OK, isAnswered { return .success(()) }
        if let verdict = judge?.verdict, !verdict.isAccepted, !hasBegun {
            return .failure(TransportError(.untrusted(verdict), fate: .notSent))
        }
        let said = handle?.errorMessage ?? String(cString: curl_easy_strerror(code))
        return .failure(
            TransportError(cause(of: code, message: said, reachability: reachability), fate: fate))
    }

    private func cause(of code: CURLcode, message said: String, reachability: NetworkReachability)
        -> TransportError.Cause
    {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            return reachability.state() == .offline ? .offline : .hostNotFound
        case CURLE_COULDNT_CONNECT: return EasyHandle.connectionFailure(of: handle?.curl, message: said)
        case CURLE_OPERATION_TIMEDOUT: return .timedOut(hasBegun ? .idle : .connecting)
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM:
            return .tls(said)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING:
            return .malformedAnswer(said)
        default: return .connectionLost(said)
        }
    }
}
