import CountersignWire
import Glibc

@testable import CountersignHTTP

/// A loop with a listener on loopback, for as long as a test needs it.
final class Engine: @unchecked Sendable {
    let loop: EventLoop
    let listener: Listener
    let port: Int
    let registry: ConnectionRegistry

    init(
        limits: Limits = Limits(), deadlines: Deadlines = Deadlines(), tls: TLSContext? = nil,
        registry: ConnectionRegistry = ConnectionRegistry(), handler: any Handler
    ) throws {
        loop = try EventLoop()
        self.registry = registry
        let (descriptors, port) = try SocketAddress.resolve(host: "127.0.0.1", port: 0)[0].listen(sockets: 1)
        self.port = port
        listener = Listener(
            descriptor: descriptors[0], loop: loop,
            settings: .init(limits: limits, deadlines: deadlines, tls: tls), registry: registry,
            handler: handler)
        listener.start()
        try loop.start(name: "test")
    }

    /// Runs on the loop and waits for it.
    func onLoop(_ body: @escaping @Sendable () -> Void) { loop.performAndWait(body) }

    func stop() {
        onLoop { [listener] in
            listener.drain()
            listener.abort()
        }
        loop.stop()
        loop.join()
    }
}

/// A flag that one thread sets and another waits for.
final class DispatchlessSignal: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    init() { sem_init(semaphore, 0, 0) }
    deinit { semaphore.deallocate() }
    func set() { sem_post(semaphore) }
    func wait() { sem_wait(semaphore) }
}

/// A blocking client that sends bytes as they are.
struct RawClient {
    let descriptor: Int32

    init(port: Int, from source: String = "127.0.0.1") throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        func call(
            _ host: String, _ port: Int, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
        ) -> Int32 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = inet_addr(host)
            return withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        guard call(source, 0, bind) == 0 else { throw HTTPError.system("bind") }
        let result = call("127.0.0.1", port, connect)
        guard result == 0 else { throw HTTPError.system("connect") }
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor, UnsafeRawBufferPointer(rebasing: $0[sent...]).baseAddress, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

    /// What comes next, at most `limit` bytes; empty at the end, nil where the connection was reset or
    /// nothing came.
    func receive(_ limit: Int = 65_536) -> String? {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = recv(descriptor, &buffer, limit, 0)
        return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    /// Everything until the other side closes.
    func receiveAll() -> String {
        var all = ""
        while let piece = receive(), !piece.isEmpty { all += piece }
        return all
    }

    /// Until the text holds `mark`.
    func receive(until mark: String) -> String {
        var all = ""
        while !all.contains(mark), let piece = receive(), !piece.isEmpty { all += piece }
        return all
    }

    func close() { Glibc.close(descriptor) }
}

/// Answers with method, target and body, each on a line.
struct EchoHandler: Handler {
    func handle(_ exchange: any Exchange) async {
        do {
            try await exchange.readWholeBody()
        } catch {
            return await refuse(error, on: exchange)
        }
        let request = exchange.request
        let text = "\(request.text(request.method))\n\(request.text(request.target))\n"
        await exchange.respond(
            ServerResponse(status: 200, type: "text/plain", body: Array(text.utf8) + request.body))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(
            ServerResponse(status: refusal.code.status, type: "text/plain", body: Array(refusal.detail.utf8)))
    }
}

extension EventLoop {
    /// Runs on the loop and waits for it.
    func performAndWait(_ body: @escaping @Sendable () -> Void) {
        let done = DispatchlessSignal()
        perform {
            body()
            done.set()
        }
        done.wait()
    }
}
