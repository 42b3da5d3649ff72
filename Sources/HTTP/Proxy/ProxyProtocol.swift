import CountersignWire
import Glibc

/// Whether connections begin with a PROXY header.
public enum ProxyProtocol: String, Sendable {
    /// No connection does; a PROXY header is refused as a malformed request.
    case off
    /// Connections of trusted proxies must. All others must not: a client that could send a header could
    /// choose its address.
    case require
}

extension Stream {
    private static let piece = 256

    /// Reads a PROXY header and leaves what stands behind it on the socket, where OpenSSL will look for it. Before
    /// ``startTLS(_:as:)`` only.
    func receiveProxyHeader() async throws(Failure) -> Result<ProxyHeader, Refusal> {
        var reader = ProxyHeaderReader()
        var piece = [UInt8](repeating: 0, count: Stream.piece)
        while true {
            guard !isClosed else { throw .closed }
            let count = recv(descriptor, &piece, piece.count, Int32(MSG_PEEK))
            guard count > 0 else {
                guard count < 0, errno == EAGAIN || errno == EINTR else { throw .closed }
                try await untilInput()
                continue
            }
            do throws(Refusal) {
                let taken = try reader.take(piece.span.extracting(0..<count))
                // What was looked at is there; taking it off cannot wait. Whatever stays is looked at only once.
                guard recv(descriptor, &piece, taken.count, 0) == taken.count else {
                    throw Refusal(.malformed, "closed")
                }
                if let header = taken.header { return .success(header) }
            } catch {
                return .failure(error)
            }
        }
    }
}
