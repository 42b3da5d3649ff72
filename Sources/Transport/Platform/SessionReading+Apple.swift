#if canImport(Security)
    /// An answer that somebody reads. When nobody does any more, the transfer ends.
    final class SessionReading: BodySource {
        private let transfer: SessionTransfer

        init(_ transfer: SessionTransfer) { self.transfer = transfer }

        deinit { cancel() }

        func cancel() { if !transfer.answer.isFinished { transfer.cancel() } }

        func next() async throws(TransportError) -> [UInt8]? {
            let transfer = transfer
            let result = await withTaskCancellationHandler {
                await transfer.answer.next { transfer.resume() }
            } onCancel: {
                transfer.cancel()
            }
            return try result.get()
        }
    }
#endif
