import CountersignMemory
import Glibc

/// Where verified requests go: a backend's host and port, and whether to speak TLS to it. Shared by all loops.
///
/// Its addresses are looked up at the start and again from time to time, never on the way of a request.
package final class UpstreamTarget: Sendable {
    /// What a new connection needs to know.
    struct Route {
        var addresses: [SocketAddress]
        var tls: TLSContext?
        var generation: Int
    }

    private struct State {
        var addresses = AddressBook()
        var tls: TLSContext?
        /// Goes up when certificates are read again.
        var generation = 0
        /// When the upstream last answered or took a connection, on the loops' clock; nil before it ever did.
        var lastSuccess: Int64?
    }

    package let host: String
    package let port: Int
    private let state: Locked<State>

    package init(host: String, port: Int, tls: TLSContext?) {
        self.host = host
        self.port = port
        state = Locked(State(tls: tls))
    }

    // MARK: Addresses

    /// Asks the resolver, and keeps the old addresses where it fails. Blocks; not for a loop.
    package func resolve() throws(HTTPFault) {
        let addresses = try SocketAddress.resolve(host: host, port: port)
        state.with { $0.addresses.replace(with: addresses) }
    }

    /// Resolves now, and again every half minute on a thread of its own, for as long as the process lives. A name that
    /// is not found is a backend that is down: requests fail until it is.
    package func keepResolving() {
        try? resolve()
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let target = Unmanaged<UpstreamTarget>.fromOpaque(context).takeRetainedValue()
                while true {
                    sleep(UpstreamTarget.resolveSeconds)
                    try? target.resolve()
                }
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }

    private static let resolveSeconds: UInt32 = 30

    // MARK: Connections

    /// For connections from now on. Those that are open end as they come to rest.
    package func replace(tls: TLSContext?) {
        state.with {
            $0.tls = tls
            $0.generation += 1
        }
    }

    var generation: Int { state.with { $0.generation } }

    func route(at now: Int64) -> Route {
        state.with {
            Route(addresses: $0.addresses.candidates(at: now), tls: $0.tls, generation: $0.generation)
        }
    }

    func didConnect(to address: SocketAddress, at now: Int64) {
        state.with {
            $0.addresses.didConnect(to: address)
            $0.lastSuccess = now
        }
    }

    func didFail(_ address: SocketAddress, at now: Int64) {
        state.with { $0.addresses.didFail(address, at: now) }
    }

    /// A pool says when its last answer began.
    func didAnswer(at time: Int64) { state.with { $0.lastSuccess = max($0.lastSuccess ?? time, time) } }

    /// When the upstream last answered or took a connection, on the loops' clock; nil before it ever did.
    var lastSuccess: Int64? { state.with { $0.lastSuccess } }
}
