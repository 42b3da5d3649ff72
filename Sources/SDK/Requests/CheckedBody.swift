import CountersignMemory
import CountersignSchemes

/// A body that streams, and must turn out to be the one that its signed head names. The last piece is held back until it has: who
/// reads to the end without an error has read what was signed.
///
/// Safe to share: a body has one reader, who asks for one piece after the other.
final class CheckedBody: @unchecked Sendable {
    private var pieces: APIBytes.Iterator
    /// Nil once the end was seen.
    private var digest: BodyDigest?
    private var held: [UInt8]?

    init(_ body: APIBytes, _ expectation: BodyExpectation) {
        pieces = body.makeAsyncIterator()
        digest = BodyDigest(expectation)
    }

    func next() async throws(CountersignError) -> [UInt8]? {
        while digest != nil {
            guard let piece = try await pieces.next() else {
                try finish()
                break
            }
            digest?.update(piece.span)
            let before = held
            held = piece
            if let before { return before }
        }
        defer { held = nil }
        return held
    }

    private func finish() throws(CountersignError) {
        guard let digest = digest.take() else { return }
        do {
            try digest.finish()
        } catch {
            held = nil
            throw .notGenuine("the body is not the one that was signed")
        }
    }
}

extension APIBytes {
    /// The same, seen to be what was signed.
    func checked(_ expectation: BodyExpectation) -> APIBytes {
        APIBytes(source: .checked(CheckedBody(self, expectation)))
    }
}
