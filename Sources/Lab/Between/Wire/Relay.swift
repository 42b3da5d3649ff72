import Glibc
import Synchronization

/// What becomes of a connection to the public port: led to the server, and heard by who listens, or taken by the man in the middle.
final class Relay: Sendable {
    private let state = Mutex(State())

    /// Who is in the middle.
    enum Middle {
        case own(ManInTheMiddle)
        case mitmproxy(Mitmproxy)
    }

    private struct State {
        var server: UInt16?
        var ears: [Ear] = []
        var middle: Middle?
        var connections: UInt64 = 0
    }

    /// Where the server is; nil until somebody said.
    var server: UInt16? {
        get { state.withLock { $0.server } }
        set { state.withLock { $0.server = newValue } }
    }

    /// Nil where nobody is in the middle.
    var middle: Middle? {
        get { state.withLock { $0.middle } }
        set { state.withLock { $0.middle = newValue } }
    }

    func add(_ ear: Ear) { state.withLock { $0.ears.append(ear) } }

    func remove(_ ear: Ear) { state.withLock { $0.ears.removeAll { $0 === ear } } }

    /// Serves one connection, and closes it.
    func serve(_ descriptor: Int32) {
        let (middle, server, connection) = state.withLock { state in
            state.connections += 1
            return (state.middle, state.server, state.connections)
        }
        switch middle {
        case .own(let man): return man.serve(descriptor)
        case .mitmproxy(let program): return program.serve(descriptor)
        case nil: break
        }
        let client = Link(descriptor)
        guard let server, let upstream = try? Socket.connect(to: "127.0.0.1", port: server) else { return }
        let link = Link(upstream)
        Pump(client: client.descriptor, server: link.descriptor) { [self] bytes, side in
            for ear in state.withLock({ $0.ears }) { ear.hear(bytes, from: side, on: connection) }
        }.run()
    }
}
