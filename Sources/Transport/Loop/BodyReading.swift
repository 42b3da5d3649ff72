/// A transfer whose answer somebody reads. When nobody does any more, the transfer ends.
final class BodyReading: BodySource {
    private let transfer: Transfer
    private let loop: TransferLoop

    init(_ transfer: Transfer, _ loop: TransferLoop) {
        self.transfer = transfer
        self.loop = loop
    }

    deinit { cancel() }

    func cancel() {
        if !transfer.answer.isFinished { loop.cancel(transfer) }
    }

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
