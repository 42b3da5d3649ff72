import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignWire

/// A body as far as the scheme needs it before it signs: in memory, by its MD5, or not at all.
struct LegacyBody: Sendable {
    /// In the draft; empty where the body streams.
    let bytes: [UInt8]
    /// Sent in place of `bytes`; nil where those are all there is.
    let streamed: RequestBody?
    /// What the scheme signs of a body that streams.
    let digest: Draft.StreamedBody?

    /// `most` bytes in memory.
    init(_ body: APIRequest.Body, _ need: LegacySigning.BodyNeed, most: Int) async throws(CountersignError) {
        switch body {
        case .none: self.init([], nil, nil)
        case .bytes(let bytes): self.init(bytes, nil, nil)
        case .file(let path): try await self.init(FileBody(path: path).body(), need, most)
        case .replayable(let stream): try await self.init(stream, need, most)
        case .once(let stream, _):
            guard need == .nothing else {
                throw .misuse("body: this scheme signs it, so that it has to be in memory, or to be had anew")
            }
            self.init([], .once(stream), nil)
        }
    }

    /// Whether there is a body for another copy.
    var use: BodyUse {
        guard case .once(let stream)? = streamed else { return .repeatable }
        return .once { stream.isUsedUp }
    }

    private init(
        _ stream: ReplayableBody, _ need: LegacySigning.BodyNeed, _ most: Int
    ) async throws(CountersignError) {
        let reader = Reader(keeping: need == .bytes ? most : nil)
        if need == .nothing {
            self.init([], .replayable(stream), nil)
            return
        }
        do {
            try await stream.write { piece in
                try Task.checkCancellation()
                try await reader.take(piece)
            }
        } catch is CancellationError {
            throw .cancelled
        } catch is Reader.TooLarge {
            throw .misuse(
                "body: this scheme signs what stands in it, in memory: expected \(most) bytes at most (largestAnswer)"
            )
        } catch {
            throw .misuse("body: its stream failed: \(error)")
        }
        let (bytes, md5, length) = await reader.finish()
        if case .bytes(let said) = stream.length, said != length {
            throw .misuse("body: its stream has \(length) bytes; \(said) were said")
        }
        if need == .bytes {
            self.init(bytes, nil, nil)
        } else {
            self.init([], .replayable(stream), Draft.StreamedBody(length: length, .md5(md5)))
        }
    }

    private init(_ bytes: [UInt8], _ streamed: RequestBody?, _ digest: Draft.StreamedBody?) {
        (self.bytes, self.streamed, self.digest) = (bytes, streamed, digest)
    }
}

/// Takes the pieces as they come.
private actor Reader {
    struct TooLarge: Error {}

    private var hash = MD5()
    private var bytes: [UInt8] = []
    private var count = 0
    /// Nil where the bytes are not wanted.
    private let most: Int?

    init(keeping most: Int?) { self.most = most }

    func take(_ piece: [UInt8]) throws {
        count += piece.count
        guard let most else { return hash.update(piece.span) }
        guard count <= most else { throw TooLarge() }
        bytes += piece
    }

    func finish() -> (bytes: [UInt8], md5: [UInt8], length: Int) {
        var whole = MD5()
        swap(&whole, &hash)
        let digest = whole.finish()
        return (bytes, digest.indices.map { digest[$0] }, count)
    }
}
