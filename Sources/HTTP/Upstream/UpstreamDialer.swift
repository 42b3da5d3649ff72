import CountersignWire
import Glibc

/// A connection to the upstream, and the generation of the certificates that it was opened under.
struct UpstreamConnection {
    let stream: Stream
    let generation: Int
    /// It has brought an answer before, and may have died since.
    var hasServed = false
}

/// Opens connections to the upstream, on one loop.
struct UpstreamDialer {
    let target: UpstreamTarget
    let loop: EventLoop
    /// Seconds for each address, TLS included.
    let patience: Int

    /// Tries the addresses that are not known to be dead until one takes the connection.
    func connect() async throws(Refusal) -> UpstreamConnection {
        let route = target.route(at: loop.seconds)
        var last = Refusal(.upstreamFailed, "\(target.host): no address is known for it")
        for address in route.addresses {
            let descriptor = address.beginConnect()
            guard descriptor >= 0 else {
                let code = errno
                last = Refusal(.upstreamFailed, HTTPFault.system("\(address)", code).description)
                // What this machine lacks says nothing of the address.
                if !UpstreamDialer.localFailures.contains(code) { target.didFail(address, at: loop.seconds) }
                continue
            }
            do throws(Refusal) {
                let stream = try await open(descriptor, to: address, tls: route.tls)
                target.didConnect(to: address, at: loop.seconds)
                return UpstreamConnection(stream: stream, generation: route.generation)
            } catch {
                target.didFail(address, at: loop.seconds)
                last = error
            }
        }
        throw last
    }

    private static let localFailures = [EMFILE, ENFILE, ENOMEM, ENOBUFS, EADDRNOTAVAIL]

    private func open(
        _ descriptor: Int32, to address: SocketAddress, tls: TLSContext?
    ) async throws(Refusal) -> Stream {
        let stream = Stream(descriptor: descriptor, loop: loop)
        stream.deadline = loop.seconds + Int64(patience) + 1
        do throws(Stream.Failure) {
            try await stream.finishConnect()
            if let tls { try await stream.startTLS(tls, as: .client(host: target.host)) }
            return stream
        } catch {
            let reason = stream.handshakeFailure
            stream.close()
            switch error {
            case .timedOut: throw Refusal(.upstreamTimeout, "\(address): no connection within \(patience) s")
            case .tls: throw Refusal(.upstreamFailed, "\(address): the TLS handshake failed: \(reason)")
            case .closed: throw Refusal(.upstreamFailed, "\(address): refused")
            }
        }
    }
}
