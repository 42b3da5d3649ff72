/// What came back for some bytes.
enum Reply: Sendable {
    case response(RawResponse)
    /// The connection ended without one that can be read.
    case closed
    /// Nothing came in time, or not all of it.
    case silence

    /// The next one on a connection. `method` is the request's.
    init(_ reader: inout MessageReader, to method: String) {
        do throws(NetworkProblem) {
            self = .response(try reader.response(to: method).message)
        } catch {
            if case .cut(Link.silence) = error { self = .silence } else { self = .closed }
        }
    }
}
