import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignWire

/// Sends a legacy client's requests. Collects responses whole: only the body says whether the session is
/// over.
struct LegacyTransport: Transport {
    let carrier: any RequestTransport
    let origin: Origin
    /// The most bytes of a response.
    let most: Int
    /// Receives the events of renewals: the requests to `renewals`.
    let events: Broadcast<CountersignEvent>
    let renewals: [UInt8]
    /// The timeout of one exchange; nil if the carrier's own timeouts apply alone.
    var patience: Duration?

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        let body: RequestBody = draft.body.isEmpty ? .none : .bytes(draft.body)
        let request = OutgoingRequest(draft, to: origin, body: body)
        let isRenewal = draft.target.prefix { $0 != UInt8(ascii: "?") } == renewals[...]
        if isRenewal { events.tell(.refreshing) }
        let result =
            if let patience {
                await AuthorityTransport.exchange(request, over: carrier, upTo: most, within: patience)
            } else {
                await AuthorityTransport.whole(request, over: carrier, upTo: most)
            }
        if isRenewal { events.tell(.refreshed(CountersignEvent.Refreshed(legacy: result))) }
        return try result.get()
    }
}

extension CountersignEvent.Refreshed {
    /// A response is a refusal under any status.
    fileprivate init(legacy result: Result<Response, TransportError>) {
        self =
            switch result {
            case .success(let response)
            where response.status < 300 && LegacyRefusals.code(of: response) == nil: .renewed
            case .success(let response): .refused(response.status)
            case .failure: .lost
            }
    }
}

/// A body as far as the scheme needs it before it signs: in memory, by its MD5, or not at all.
struct LegacyBody: Sendable {
    /// In the draft; empty where the body streams.
    let bytes: [UInt8]
    /// Sent in place of `bytes`; nil if those are the whole body.
    let streamed: RequestBody?
    /// What the scheme signs of a body that streams.
    let digest: Draft.StreamedBody?

    /// `most` bytes in memory.
    init(_ body: APIRequest.Body, need: LegacySigningMethod.BodyNeed, most: Int)
        async throws(CountersignError)
    {
        switch body {
        case .none: self.init([], streamed: nil, digest: nil)
        case .bytes(let bytes): self.init(bytes, streamed: nil, digest: nil)
        case .file(let path): try await self.init(FileBody(path: path).body(), need: need, most: most)
        case .replayable(let stream): try await self.init(stream, need: need, most: most)
        case .once(let stream, _):
            guard need == .nothing else {
                throw .misuse("body: this scheme signs it, so that it has to be in memory, or to be had anew")
            }
            self.init([], streamed: .once(stream), digest: nil)
        }
    }

    /// Whether a body is available for another copy.
    var use: BodyUse {
        guard case .once(let stream)? = streamed else { return .repeatable }
        return .once { stream.isUsedUp }
    }

    private init(
        _ stream: ReplayableBody, need: LegacySigningMethod.BodyNeed, most: Int
    ) async throws(CountersignError) {
        let reader = Reader(keeping: need == .bytes ? most : nil)
        if need == .nothing {
            self.init([], streamed: .replayable(stream), digest: nil)
            return
        }
        do {
            try await stream.write { piece in
                try Task.checkCancellation()
                try await reader.take(piece)
            }
        } catch is CancellationError {
            throw .cancelled
        } catch {
            if let tooLong = await reader.tooLong { throw tooLong }
            throw .misuse("body: its stream failed: \(error)")
        }
        let (bytes, md5, length) = await reader.finish()
        if case .bytes(let said) = stream.length, said != length {
            throw .misuse("body: its stream has \(length) bytes; \(said) were said")
        }
        if need == .bytes {
            self.init(bytes, streamed: nil, digest: nil)
        } else {
            self.init(
                [], streamed: .replayable(stream),
                digest: Draft.StreamedBody(length: length, digest: .md5(md5)))
        }
    }

    private init(_ bytes: [UInt8], streamed: RequestBody?, digest: Draft.StreamedBody?) {
        (self.bytes, self.streamed, self.digest) = (bytes, streamed, digest)
    }
}

/// Collects the pieces as they come.
private actor Reader {
    /// Set once there are too many bytes; distinguishes this error from one of the stream's own.
    private(set) var tooLong: CountersignError?
    private var hash = MD5()
    private var bytes: [UInt8] = []
    private var count = 0
    /// Nil if the bytes are not needed.
    private let most: Int?

    init(keeping most: Int?) { self.most = most }

    func take(_ piece: [UInt8]) throws(CountersignError) {
        count += piece.count
        guard let most else { return hash.update(piece.span) }
        guard count <= most else {
            let error = CountersignError.misuse(
                "body: this scheme signs its content, in memory: "
                    + "expected at most \(most) bytes (largestAnswer)"
            )
            tooLong = error
            throw error
        }
        bytes += piece
    }

    func finish() -> (bytes: [UInt8], md5: [UInt8], length: Int) {
        var whole = MD5()
        swap(&whole, &hash)
        let digest = whole.finish()
        return (bytes, digest.indices.map { digest[$0] }, count)
    }
}
