import CountersignHTTP
import CountersignWire

/// A server in this process, on 127.0.0.1: our HTTP engine on an event loop of its own, with one function
/// that responds.
package final class LocalServer: Sendable {
    package typealias RequestHandler = @Sendable (RawRequest) throws(LabError) -> RawResponse

    package let port: UInt16
    private let loop: EventLoop
    private let listener: Listener

    /// Starts to listen. `port` 0 selects a free port. `answer` is called on the loop's thread, for one
    /// request at a time.
    package init(port: UInt16 = 0, tls: TLSContext? = nil, handler answer: @escaping RequestHandler)
        throws(LabError)
    {
        let (descriptors, port) = try LocalServer.listen(on: port)
        do {
            let loop = try EventLoop()
            let settings = Listener.Settings(limits: Limits(), deadlines: Deadlines(), tls: tls)
            listener = Listener(
                descriptor: descriptors[0], loop: loop, settings: settings, registry: ConnectionRegistry(),
                handler: LocalServerHandler(answer: answer))
            listener.start()
            try loop.start(name: "lab-server")
            self.loop = loop
            self.port = UInt16(truncatingIfNeeded: port)
        } catch {
            throw LabError(error.description)
        }
    }

    /// `port` 0 chooses a free port; if another process takes it first, the next one is tried.
    private static func listen(on port: UInt16) throws(LabError) -> (descriptors: [Int32], port: Int) {
        var attempts = port == 0 ? 4 : 1
        while true {
            let candidate = port == 0 ? try Ports.free() : port
            do {
                return try SocketAddress.resolve(host: "127.0.0.1", port: Int(candidate))[0].listen(
                    sockets: 1)
            } catch {
                attempts -= 1
                guard attempts > 0 else { throw LabError(error.description) }
            }
        }
    }

    /// Closes all connections, and accepts no more; returns once the port is free.
    package func stop() {
        loop.perform { [listener] in
            listener.drain()
            listener.abort()
        }
        loop.stop()
        loop.join()
    }
}

private struct LocalServerHandler: Handler {
    let answer: LocalServer.RequestHandler

    func handle(_ exchange: any Exchange) async {
        do {
            try await exchange.readWholeBody()
        } catch {
            return await refuse(error, on: exchange)
        }
        let response: RawResponse
        do {
            response = try answer(RawRequest(exchange.request))
        } catch {
            // A reference server reports its errors in the response; the stage sees the status.
            response = RawResponse(500, json: ["reason": .string(error.description)])
        }
        await exchange.respond(ServerResponse(response))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(ServerResponse(RawResponse(400, json: ["reason": .string(refusal.detail)])))
    }
}

extension RawRequest {
    fileprivate init(_ request: Request) {
        self.init(
            method: request.text(request.method), target: request.text(request.target),
            fields: RawFields(
                request.fields.map {
                    RawFields.Line(name: request.text($0.name), value: request.text($0.value))
                }),
            body: request.body)
    }
}

extension ServerResponse {
    fileprivate init(_ response: RawResponse) {
        self.init(
            status: response.status, type: response.fields["content-type"] ?? "text/plain",
            body: response.body)
    }
}
