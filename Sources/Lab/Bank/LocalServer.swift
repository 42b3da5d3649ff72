import CountersignHTTP
import CountersignWire

/// A server in this process, on 127.0.0.1: our HTTP engine on a loop of its own, and one function that answers.
package final class LocalServer: Sendable {
    package typealias Answering = @Sendable (RawRequest) throws(StageFault) -> RawResponse

    package let port: UInt16
    private let loop: EventLoop
    private let listener: Listener

    /// Listens from now on. `port` 0 has one picked. `answer` is called on the loop's thread, one request after the other.
    package init(port: UInt16 = 0, tls: TLSContext? = nil, _ answer: @escaping Answering) throws(StageFault) {
        let port = port == 0 ? try Ports.free() : port
        do throws(HTTPFault) {
            let loop = try EventLoop()
            let address = try SocketAddress.resolve(host: "127.0.0.1", port: Int(port))[0]
            let (descriptors, port) = try address.listen(sockets: 1)
            let settings = Listener.Settings(limits: Limits(), deadlines: Deadlines(), tls: tls)
            listener = Listener(
                descriptor: descriptors[0], loop: loop, settings: settings, registry: ConnectionRegistry(),
                handler: Answerer(answer: answer))
            listener.start()
            try loop.start(name: "lab-server")
            self.loop = loop
            self.port = UInt16(truncatingIfNeeded: port)
        } catch {
            throw StageFault(error.description)
        }
    }

    /// Cuts all connections, and takes no more; returns once the port is free.
    package func stop() {
        loop.perform { [listener] in
            listener.drain()
            listener.abort()
        }
        loop.stop()
        loop.join()
    }
}

private struct Answerer: Handler {
    let answer: LocalServer.Answering

    func handle(_ exchange: any Exchange) async {
        do throws(Refusal) {
            try await exchange.readWholeBody()
        } catch {
            return await refuse(error, exchange)
        }
        let response: RawResponse
        do throws(StageFault) {
            response = try answer(RawRequest(exchange.request))
        } catch {
            // A server of the field that fails says so in a page of its own; the stage sees the status.
            response = RawResponse(500, json: ["reason": .string(error.description)])
        }
        await exchange.respond(Answer(response))
    }

    func refuse(_ refusal: Refusal, _ exchange: any Exchange) async {
        await exchange.respond(Answer(RawResponse(400, json: ["reason": .string(refusal.detail)])))
    }
}

extension RawRequest {
    fileprivate init(_ request: Request) {
        self.init(
            request.text(request.method), request.text(request.target),
            fields: RawFields(request.fields.map { RawFields.Line(request.text($0.name), request.text($0.value)) }),
            body: request.body)
    }
}

extension Answer {
    fileprivate init(_ response: RawResponse) {
        self.init(
            status: response.status, type: response.fields["content-type"] ?? "text/plain", body: response.body)
    }
}
