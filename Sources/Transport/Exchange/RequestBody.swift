import CountersignMemory
import CountersignTrust

/// What a request carries.
public enum RequestBody: Sendable {
    /// No body, and no field that says how long it is.
    case none
    /// All of it, in memory.
    case bytes([UInt8])
    /// A stream that can be had anew, so that the request can be sent again.
    case replayable(ReplayableBody)
    /// A stream that is used up by being sent: a request with one is never sent twice.
    case once(OnceBody)
}

/// How long a streamed body is.
public enum BodyLength: Sendable, Hashable {
    /// In bytes. A stream with more or fewer breaks the request off.
    case bytes(Int)
    /// Sent in chunks. Source: RFC 9112 §7.1.
    case unknown
}

/// Hands a stream's pieces to what takes them, no faster than it does.
package typealias BodyWriter = @Sendable (_ take: @Sendable ([UInt8]) async throws -> Void) async throws -> Void

/// A body from a stream that can be made again: a file, a generator.
public struct ReplayableBody: Sendable {
    package let length: BodyLength
    /// Reads the stream once.
    package let write: BodyWriter

    /// `make` is called once for each time the body is sent, when the connection stands; the sequence's pieces are sent
    /// as they come. What it throws breaks the request off.
    public init<Pieces: AsyncSequence & Sendable>(
        _ length: BodyLength, _ make: @escaping @Sendable () -> Pieces
    ) where Pieces.Element == [UInt8] {
        self.length = length
        write = { take in
            for try await piece in make() { try await take(piece) }
        }
    }
}

/// A body from a stream that is gone once it was read: a camera, a pipe.
public final class OnceBody: Sendable {
    package let length: BodyLength
    private let unused: Locked<BodyWriter?>

    /// The sequence is read when the connection stands; a request that never came that far leaves it as it is.
    public init<Pieces: AsyncSequence & Sendable>(_ length: BodyLength, _ pieces: Pieces)
    where Pieces.Element == [UInt8] {
        self.length = length
        let write: BodyWriter = { take in
            for try await piece in pieces { try await take(piece) }
        }
        unused = Locked(write)
    }

    /// The stream, to the first who asks.
    package func take() -> BodyWriter? {
        unused.with { writer in
            defer { writer = nil }
            return writer
        }
    }

    /// Whether it was read, in part or whole.
    public var isUsedUp: Bool { unused.with { $0 == nil } }
}
