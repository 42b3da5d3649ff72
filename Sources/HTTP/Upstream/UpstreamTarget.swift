import CountersignMemory
import CountersignThreads
import Glibc

/// The destination of verified requests: a backend's host and port, and its TLS settings. Shared by all
/// loops; may be replaced while they run.
///
/// The addresses are resolved at the start and periodically, never while a request waits.
package final class UpstreamTarget: Sendable {
    /// What a new connection needs: candidate addresses and the current TLS settings.
    struct Route {
        var host: String
        var addresses: [SocketAddress]
        var tls: TLSContext?
        var generation: Int
    }

    private struct State {
        var host: String
        var port: Int
        var addresses = UpstreamAddressList()
        var tls: TLSContext?
        /// Incremented when the host, the port or the TLS settings are replaced.
        var generation = 0
        /// When the upstream last answered or took a connection, on the loops' clock; nil before it ever did.
        var lastSuccess: Int64?
    }

    package var host: String { state.with { $0.host } }
    private let state: Locked<State>

    package init(host: String, port: Int, tls: TLSContext?) {
        state = Locked(State(host: host, port: port, tls: tls))
    }

    /// Another destination, whose name was resolved.
    package struct Replacement: Sendable {
        fileprivate let host: String
        fileprivate let port: Int
        fileprivate let addresses: [SocketAddress]
        fileprivate let tls: TLSContext?

        /// Throws if the name cannot be resolved. Blocks; must not be called on a loop.
        package init(host: String, port: Int, tls: TLSContext?) throws(HTTPError) {
            self.host = host
            self.port = port
            self.tls = tls
            addresses = try SocketAddress.resolve(host: host, port: port)
        }
    }

    // MARK: Addresses

    /// Resolves the host, and keeps the old addresses if that fails. Blocks; must not be called on a loop.
    package func resolve() throws(HTTPError) {
        let (host, port) = state.with { ($0.host, $0.port) }
        let addresses = try SocketAddress.resolve(host: host, port: port)
        state.with { state in
            // The destination may have been replaced meanwhile.
            guard state.host == host, state.port == port else { return }
            state.addresses.replace(with: addresses)
        }
    }

    /// The effect of a name that is not found, for the log.
    package static let unresolved = "does not resolve: requests get 502 until it does"

    /// Resolves now, and every half minute on a separate thread for the lifetime of the process. A name
    /// that is not found counts as a backend that is down: requests fail until it is found. `note` receives
    /// ``unresolved`` if it is not found now.
    package func keepResolving(note: (String) -> Void = { _ in }) {
        do { try resolve() } catch { note("\(host): \(UpstreamTarget.unresolved)") }
        _ = try? WorkerThreads(purpose: "to resolve names on") { [self] in
            while true {
                sleep(UpstreamTarget.resolveSeconds)
                try? resolve()
            }
        }
    }

    private static let resolveSeconds: UInt32 = 30

    // MARK: Connections

    /// Replaces the TLS settings for new connections. Open connections close when they become idle.
    package func replace(tls: TLSContext?) {
        state.with {
            $0.tls = tls
            $0.generation += 1
        }
    }

    /// Replaces the destination for new connections. Open connections close when they become idle.
    package func replace(by replacement: Replacement) {
        state.with {
            $0.host = replacement.host
            $0.port = replacement.port
            $0.addresses = UpstreamAddressList()
            $0.addresses.replace(with: replacement.addresses)
            $0.tls = replacement.tls
            $0.generation += 1
            $0.lastSuccess = nil
        }
    }

    var generation: Int { state.with { $0.generation } }

    func route(at now: Int64) -> Route {
        state.with {
            Route(
                host: $0.host, addresses: $0.addresses.candidates(at: now), tls: $0.tls,
                generation: $0.generation)
        }
    }

    /// Records that a connection has opened, by a route of that generation.
    func didConnect(to address: SocketAddress, at now: Int64, from generation: Int) {
        state.with {
            $0.addresses.didConnect(to: address)
            if $0.generation == generation { $0.lastSuccess = now }
        }
    }

    func didFail(_ address: SocketAddress, at now: Int64) {
        state.with { $0.addresses.didFail(address, at: now) }
    }

    /// Records when the last response began that a pool has had from the destination of that generation.
    func didAnswer(at time: Int64, from generation: Int) {
        state.with {
            if $0.generation == generation { $0.lastSuccess = max($0.lastSuccess ?? time, time) }
        }
    }

    /// When the upstream last answered or took a connection, on the loops' clock; nil before it ever did.
    var lastSuccess: Int64? { state.with { $0.lastSuccess } }
}

/// The addresses of the upstream's name, and which of them failed recently. Shared by all loops; used only
/// when a connection opens.
///
/// New connections use the addresses in turn. An address that failed is skipped, for one second at first
/// and twice as long after each further failure, up to a minute; then one connection tries it again. If all
/// addresses are skipped, the one that failed longest ago is tried, so a backend with one address is always
/// tried.
struct UpstreamAddressList {
    private struct Entry {
        var address: SocketAddress
        /// Failures since the last success.
        var failures = 0
        var failedAt = Int64.min
        var skippedUntil = Int64.min

        var pause: Int64 { min(1 << Int64(min(failures - 1, 6)), UpstreamAddressList.longestPause) }
    }

    private static let longestPause: Int64 = 60
    private var entries: [Entry] = []
    private var turn = 0

    /// The addresses that one connection may try, in order; empty if the name has none. `now` is in seconds
    /// of the loops' clock.
    mutating func candidates(at now: Int64) -> [SocketAddress] {
        guard !entries.isEmpty else { return [] }
        turn = (turn + 1) % entries.count
        var chosen: [SocketAddress] = []
        for offset in entries.indices {
            let index = (turn + offset) % entries.count
            guard entries[index].skippedUntil <= now else { continue }
            chosen.append(entries[index].address)
            // Other connections skip the address until the outcome of this attempt is known.
            if entries[index].failures > 0 { entries[index].skippedUntil = now + entries[index].pause }
        }
        if chosen.isEmpty,
            let oldest = entries.indices.min(by: { entries[$0].failedAt < entries[$1].failedAt })
        {
            chosen.append(entries[oldest].address)
        }
        return chosen
    }

    mutating func didConnect(to address: SocketAddress) {
        guard let index = entries.firstIndex(where: { $0.address == address }) else { return }
        entries[index].failures = 0
        entries[index].skippedUntil = .min
    }

    mutating func didFail(_ address: SocketAddress, at now: Int64) {
        guard let index = entries.firstIndex(where: { $0.address == address }) else { return }
        // Connections that were begun together fail together, which counts as one failure.
        if entries[index].failures == 0 || entries[index].failedAt + entries[index].pause <= now {
            entries[index].failures += 1
        }
        entries[index].failedAt = now
        entries[index].skippedUntil = now + entries[index].pause
    }

    /// Replaces the addresses by the resolver's current result; a known address keeps its failures.
    mutating func replace(with addresses: [SocketAddress]) {
        entries = addresses.map { address in
            entries.first { $0.address == address } ?? Entry(address: address)
        }
    }
}
