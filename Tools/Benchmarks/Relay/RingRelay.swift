import CRelay
import Glibc

/// Relays over io_uring: each socket has a receive into provided buffers under way, and a buffer is sent on
/// without a copy. Sends are queued and started with the wait for the next completions.
struct RingRelay {
    enum Form: String {
        /// One multishot receive for each socket.
        case multishot = "ring"
        /// A new receive after each, for a program that must not read before it can send.
        case once = "ring-once"
        /// Multishot receives, and sends at once, by a system call each.
        case receivesOnly = "ring-receive"
    }

    private var ring = Ring()
    private let listener: Int32
    private let upstreamPort: UInt16
    private var work: UserWork
    private let form: Form
    /// By descriptor: the other connection of the pair, whether this one is the client's, and whether its
    /// receive has ended.
    private var peers = [Int32](repeating: -1, count: 4096)
    private var isClient = [Bool](repeating: false, count: 4096)
    private var hasEnded = [Bool](repeating: false, count: 4096)

    init(listener: Int32, upstreamPort: UInt16, work: UserWork, form: Form) {
        (self.listener, self.upstreamPort) = (listener, upstreamPort)
        (self.work, self.form) = (work, form)
    }

    private mutating func add(_ client: Int32) {
        let upstream = Sockets.connectUpstream(of: client, port: upstreamPort)
        (peers[Int(client)], peers[Int(upstream)]) = (upstream, client)
        (isClient[Int(client)], isClient[Int(upstream)]) = (true, false)
        for socket in [client, upstream] {
            hasEnded[Int(socket)] = false
            ring.setRegistered(socket, at: socket)
            ring.receive(from: socket, isMultishot: form != .once)
        }
    }

    /// Ends the other connection's receive, too; when both have ended, nothing of the pair is the kernel's.
    private mutating func end(_ socket: Int32) {
        let peer = peers[Int(socket)]
        hasEnded[Int(socket)] = true
        guard hasEnded[Int(peer)] else {
            shutdown(peer, Int32(SHUT_RDWR))
            return
        }
        for each in [socket, peer] {
            ring.setRegistered(nil, at: each)
            close(each)
        }
    }

    private mutating func handle(_ completion: io_uring_cqe) {
        let tag = Tag(rawValue: completion.user_data)
        let isLast = completion.flags & UInt32(IORING_CQE_F_MORE) == 0
        switch tag.kind {
        case .accept:
            guard completion.res >= 0 else { fail("accept \(completion.res)") }
            add(completion.res)
            if isLast { ring.accept(from: listener) }
        case .receive:
            guard completion.res > 0 else {
                guard completion.res != -ENOBUFS else { fail("no buffer is free") }
                return end(tag.place)
            }
            let buffer = UInt16(completion.flags >> UInt32(IORING_CQE_BUFFER_SHIFT))
            forward(buffer, count: Int(completion.res), from: tag.place)
            if isLast { ring.receive(from: tag.place, isMultishot: form != .once) }
        case .send:
            guard completion.res == tag.count else { fail("a short send") }
            ring.giveBack(tag.buffer)
        case nil:
            fail("an unknown completion")
        }
    }

    private mutating func forward(_ buffer: UInt16, count: Int, from socket: Int32) {
        if isClient[Int(socket)] { work.run() }
        let peer = peers[Int(socket)]
        guard form == .receivesOnly else { return ring.send(buffer, count: count, to: peer) }
        Sockets.sendAll(ring.bytes(of: buffer), count: count, to: peer)
        ring.giveBack(buffer)
    }

    mutating func run() -> Never {
        ring.accept(from: listener)
        while true {
            ring.submit(awaiting: 1)
            while let completion = ring.nextCompletion() { handle(completion) }
        }
    }
}
