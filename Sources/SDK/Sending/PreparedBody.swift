import CountersignClient
import CountersignSeal
import CountersignTransport

/// A body with its digest and length: what the signature covers, and what is sent.
struct PreparedBody: Sendable {
    let body: RequestBody
    /// SHA-256; nil for a body in memory, whose bytes are signed, and for no body.
    let digest: [UInt8]?
    /// In bytes.
    let length: Int

    init(_ body: APIRequest.Body) async throws(CountersignError) {
        switch body {
        case .none: self.init(.none, digest: nil, length: 0)
        case .bytes(let bytes):
            self.init(bytes.isEmpty ? .none : .bytes(bytes), digest: nil, length: bytes.count)
        case .file(let path): try await self.init(FileBody(path: path).body())
        case .replayable(let stream): try await self.init(stream)
        case .once(let stream, let digest):
            guard digest.count == 32 else { throw .misuse("body: expected a SHA-256 of 32 bytes") }
            guard case .bytes(let length) = stream.length else {
                throw .misuse("body: a stream that is sent once has a length in bytes")
            }
            self.init(.once(stream), digest: digest, length: length)
        }
    }

    /// Whether a body is available for another copy.
    var use: BodyUse {
        guard case .once(let stream) = body else { return .repeatable }
        return .once { stream.isUsedUp }
    }

    /// Reads the stream once, for its digest and length.
    private init(_ stream: ReplayableBody) async throws(CountersignError) {
        let reader = DigestReader()
        do {
            try await stream.write { piece in
                try Task.checkCancellation()
                await reader.take(piece)
            }
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .misuse("body: its stream failed: \(error)")
        }
        let (digest, length) = await reader.finish()
        if case .bytes(let said) = stream.length, said != length {
            throw .misuse("body: its stream has \(length) bytes; \(said) were said")
        }
        self.init(.replayable(stream), digest: digest, length: length)
    }

    private init(_ body: RequestBody, digest: [UInt8]?, length: Int) {
        (self.body, self.digest, self.length) = (body, digest, length)
    }
}

/// Hashes the pieces as they come.
private actor DigestReader {
    private var hash = SHA256()
    private var count = 0

    func take(_ piece: [UInt8]) {
        hash.update(piece.span)
        count += piece.count
    }

    func finish() -> (digest: [UInt8], length: Int) {
        var whole = SHA256()
        swap(&whole, &hash)
        let digest = whole.finish()
        return (digest.indices.map { digest[$0] }, count)
    }
}
