import CountersignWire
import Glibc

/// A loop's connections to the upstream: those at rest, most recently used first. Confined to that loop.
package final class UpstreamPool: @unchecked Sendable {
    private static let mostIdle = 256
    private static let idleSeconds: Int64 = 55

    let target: UpstreamTarget
    let loop: EventLoop
    let deadlines: Deadlines
    private var idle: [Stream] = []

    /// On the loop, or before it starts.
    package init(target: UpstreamTarget, loop: EventLoop, deadlines: Deadlines) {
        self.target = target
        self.loop = loop
        self.deadlines = deadlines
        loop.onTick { [self] in sweep() }
    }

    /// A connection that is at rest and, as far as can be seen, alive.
    func takeIdle() -> Stream? {
        var index = idle.count
        while index > 0 {
            index -= 1
            // Given back in this very turn: nobody has looked yet whether more came behind the answer.
            guard idle[index].restedIn != loop.turn else { continue }
            let stream = idle.remove(at: index)
            // It spoke or closed while nobody was asking: whatever that was, it is no answer of ours.
            guard stream.isClosed || stream.hasUnreadSignal else { return stream }
            stream.close()
        }
        return nil
    }

    func giveBack(_ stream: Stream) {
        guard idle.count < UpstreamPool.mostIdle, !stream.isClosed else { return stream.close() }
        stream.deadline = loop.seconds + UpstreamPool.idleSeconds
        stream.armRead()
        stream.restedIn = loop.turn
        idle.append(stream)
    }

    private func sweep() {
        let now = loop.seconds
        for stream in idle where stream.deadline <= now || stream.hasUnreadSignal { stream.close() }
        idle.removeAll { $0.isClosed }
    }

    func connect() async throws(Refusal) -> Stream {
        var last = Refusal(.upstreamFailed, "\(target.host): no address is known for it")
        for address in target.nextAddresses() {
            let descriptor = address.beginConnect()
            guard descriptor >= 0 else {
                last = Refusal(.upstreamFailed, "\(address): \(String(cString: strerror(errno)))")
                continue
            }
            let stream = Stream(descriptor: descriptor, loop: loop)
            stream.deadline = loop.seconds + Int64(deadlines.upstreamConnect) + 1
            do throws(Stream.Failure) {
                try await stream.finishConnect()
                if let tls = target.tls { try await stream.startTLS(tls, as: .client(host: target.host)) }
                return stream
            } catch .timedOut {
                stream.close()
                last = Refusal(.upstreamTimeout, "\(address): no connection within \(deadlines.upstreamConnect) s")
            } catch {
                stream.close()
                last = Refusal(.upstreamFailed, "\(address): \(error == .tls ? "the TLS handshake failed" : "refused")")
            }
        }
        throw last
    }
}
