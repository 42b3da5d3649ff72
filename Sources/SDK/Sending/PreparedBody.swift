import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignWire

/// A body as it is sent, with what must be known of it before the request is signed.
struct PreparedBody: Sendable {
    let body: RequestBody
    /// Of a body that streams, if the signature covers one; nil for a body in memory, whose bytes are signed,
    /// and for no body.
    let digest: Draft.StreamedBody.Digest?
    /// In bytes; 0 for a stream of which nothing must be known.
    let length: Int

    /// For a signature that covers the SHA-256.
    init(_ body: APIRequest.Body) async throws(CountersignError) {
        try await self.init(body, need: .sha256, most: .max)
    }

    /// `most`: bytes of a stream that must be in memory.
    init(_ body: APIRequest.Body, need: BodyNeed, most: Int) async throws(CountersignError) {
        switch body {
        case .none: self.init(.none, digest: nil, length: 0)
        case .bytes(let bytes): self.init(bytes)
        case .file(let path): try await self.init(FileBody(path: path).body(), need: need, most: most)
        case .replayable(let stream): try await self.init(stream, need: need, most: most)
        case .once(let stream, let digest):
            switch need {
            case .nothing: self.init(.once(stream), digest: nil, length: 0)
            case .sha256:
                guard digest.count == 32 else { throw .misuse("body: expected a SHA-256 of 32 bytes") }
                guard case .bytes(let length) = stream.length else {
                    throw .misuse("body: a stream that is sent once has a length in bytes")
                }
                self.init(.once(stream), digest: .sha256(digest), length: length)
            case .bytes, .md5:
                throw .misuse(
                    "body: this scheme signs it; expected a body in memory or one that can be read twice")
            }
        }
    }

    /// True for a body in memory and for a request without a body.
    var isInMemory: Bool {
        switch body {
        case .none, .bytes: true
        case .replayable, .once: false
        }
    }

    /// For the draft.
    var streamed: Draft.StreamedBody? { digest.map { Draft.StreamedBody(length: length, digest: $0) } }

    /// Whether a body is available for another copy.
    var use: BodyUse {
        guard case .once(let stream) = body else { return .repeatable }
        return .once { stream.isUsedUp }
    }

    /// Reads the stream once if anything must be known of it.
    private init(_ stream: ReplayableBody, need: BodyNeed, most: Int) async throws(CountersignError) {
        guard need != .nothing else {
            self.init(.replayable(stream), digest: nil, length: 0)
            return
        }
        let reader = BodyReader(need, most: most)
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
        let (bytes, digest, length) = await reader.finish()
        if case .bytes(let said) = stream.length, said != length {
            throw .misuse("body: its stream has \(length) bytes; \(said) were said")
        }
        if let digest {
            self.init(.replayable(stream), digest: digest, length: length)
        } else {
            self.init(bytes)
        }
    }

    private init(_ bytes: [UInt8]) {
        self.init(bytes.isEmpty ? .none : .bytes(bytes), digest: nil, length: bytes.count)
    }

    private init(_ body: RequestBody, digest: Draft.StreamedBody.Digest?, length: Int) {
        (self.body, self.digest, self.length) = (body, digest, length)
    }
}

/// Hashes or collects the pieces as they come.
private actor BodyReader {
    /// Set once there are too many bytes; distinguishes this error from one of the stream's own.
    private(set) var tooLong: CountersignError?
    private let need: BodyNeed
    private let most: Int
    private var sha256 = SHA256()
    private var md5 = MD5()
    private var bytes: [UInt8] = []
    private var count = 0

    init(_ need: BodyNeed, most: Int) { (self.need, self.most) = (need, most) }

    func take(_ piece: [UInt8]) throws(CountersignError) {
        count += piece.count
        switch need {
        case .sha256: sha256.update(piece.span)
        case .md5: md5.update(piece.span)
        case .nothing: break
        case .bytes:
            guard count <= most else {
                let error = CountersignError.misuse(
                    "body: this scheme signs its content, in memory: "
                        + "expected at most \(most) bytes (largestAnswer)")
                tooLong = error
                throw error
            }
            bytes += piece
        }
    }

    func finish() -> (bytes: [UInt8], digest: Draft.StreamedBody.Digest?, length: Int) {
        switch need {
        case .sha256:
            var whole = SHA256()
            swap(&whole, &sha256)
            let digest = whole.finish()
            return ([], .sha256(digest.indices.map { digest[$0] }), count)
        case .md5:
            var whole = MD5()
            swap(&whole, &md5)
            let digest = whole.finish()
            return ([], .md5(digest.indices.map { digest[$0] }), count)
        case .bytes, .nothing: return (bytes, nil, count)
        }
    }
}
