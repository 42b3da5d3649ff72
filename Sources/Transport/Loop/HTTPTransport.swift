import CountersignTrust

/// Sends requests over HTTP/1.1 and libcurl, to servers that a `Trust` accepts.
///
/// It follows no redirect, uses only a configured proxy, keeps no cookies and sends no request twice: a
/// request signed for one server goes to that server, once. One thread runs all transfers; no caller's thread
/// waits. A request in progress outlives the value that sent it.
public final class HTTPTransport: RequestTransport {
    private let loop: TransferLoop

    /// Starts the thread.
    public init(trust: Trust, options: TransportOptions = TransportOptions()) throws(TransportError) {
        loop = try TransferLoop(trust: trust, options: options)
    }

    deinit { loop.closeWhenIdle() }

    /// Sends `request` and waits for the head of the response.
    ///
    /// Cancelling the task ends the transfer. `progress` is called on the transport's thread and must not
    /// wait.
    public func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse {
        if let flaw = request.flaw { throw TransportError(.malformedRequest(flaw), fate: .notSent) }
        let loop = loop
        let transfer = Transfer(request, progress: progress, loop: loop)
        let result = await withTaskCancellationHandler {
            loop.start(transfer)
            return await transfer.answer.head()
        } onCancel: {
            loop.cancel(transfer)
        }
        let head = try result.get()
        return IncomingResponse(
            status: head.status, fields: head.fields,
            body: ResponseBody(whole: TransferBodySource(transfer, loop: loop)))
    }

    /// Replaces the trust. Every connection made under the old one is closed together with its transfers: a
    /// key that is no longer trusted is not trusted for the rest of a response. Waiting requests use the new
    /// trust.
    public func replaceTrust(by trust: Trust) { loop.replaceTrust(by: trust) }
}

/// The transport of this platform.
public typealias PlatformTransport = HTTPTransport

/// The body of a transfer's response. The transfer ends when the reader releases it.
final class TransferBodySource: WholeBodySource {
    private let transfer: Transfer
    private let loop: TransferLoop

    init(_ transfer: Transfer, loop: TransferLoop) {
        self.transfer = transfer
        self.loop = loop
    }

    deinit { cancel() }

    func cancel() {
        if !transfer.answer.isFinished { loop.cancel(transfer) }
    }

    func takeWhole(upTo limit: Int) -> [UInt8]? { transfer.answer.takeWhole(upTo: limit) }

    func next() async throws(TransportError) -> [UInt8]? {
        let (transfer, loop) = (transfer, loop)
        let result = await withTaskCancellationHandler {
            await transfer.answer.next { loop.resume(transfer) }
        } onCancel: {
            loop.cancel(transfer)
        }
        return try result.get()
    }
}
