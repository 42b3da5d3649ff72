import CRelay
import Glibc

/// Relays as the gateway's loop does: level-triggered epoll, one `recv` for each readable socket, `send` at
/// once; or, if `sendsLate`, when all sockets of the turn have been read, as the ring does.
struct EpollRelay {
    private let poll = epoll_create1(0)
    private let listener: Int32
    private let upstreamPort: UInt16
    private var work: UserWork
    private let sendsLate: Bool
    private static let turn = 256
    /// By descriptor: the other connection of the pair, and whether this one is the client's.
    private var peers = [Int32](repeating: -1, count: 4096)
    private var isClient = [Bool](repeating: false, count: 4096)

    init(listener: Int32, upstreamPort: UInt16, work: UserWork, sendsLate: Bool) {
        (self.listener, self.upstreamPort) = (listener, upstreamPort)
        (self.work, self.sendsLate) = (work, sendsLate)
    }

    private func watch(_ descriptor: Int32) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = descriptor
        guard epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0 else { fail("epoll_ctl") }
    }

    private mutating func accept() {
        let client = Glibc.accept(listener, nil, nil)
        guard client >= 0 else { fail("accept") }
        let upstream = Sockets.connectUpstream(of: client, port: upstreamPort)
        (peers[Int(client)], peers[Int(upstream)]) = (upstream, client)
        (isClient[Int(client)], isClient[Int(upstream)]) = (true, false)
        watch(client)
        watch(upstream)
    }

    private mutating func closePair(of descriptor: Int32) {
        let peer = peers[Int(descriptor)]
        (peers[Int(descriptor)], peers[Int(peer)]) = (-1, -1)
        close(descriptor)
        close(peer)
    }

    mutating func run() -> Never {
        let capacity = 4096
        let buffers = UnsafeMutableRawPointer.allocate(byteCount: Self.turn * capacity, alignment: 64)
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: Self.turn)
        var unsent: [(bytes: UnsafeMutableRawPointer, count: Int, receiver: Int32)] = []
        watch(listener)
        while true {
            for index in 0..<Int(epoll_wait(poll, events, Int32(Self.turn), -1)) {
                let descriptor = events[index].data.fd
                if descriptor == listener {
                    accept()
                    continue
                }
                // An earlier event of this turn may have closed the pair.
                guard peers[Int(descriptor)] >= 0 else { continue }
                let buffer = sendsLate ? buffers + index * capacity : buffers
                let count = recv(descriptor, buffer, capacity, 0)
                guard count > 0 else {
                    closePair(of: descriptor)
                    continue
                }
                if isClient[Int(descriptor)] { work.run() }
                let receiver = peers[Int(descriptor)]
                if sendsLate {
                    unsent.append((buffer, count, receiver))
                } else {
                    Sockets.sendAll(buffer, count: count, to: receiver)
                }
            }
            for each in unsent { Sockets.sendAll(each.bytes, count: each.count, to: each.receiver) }
            unsent.removeAll(keepingCapacity: true)
        }
    }
}
