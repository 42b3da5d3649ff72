#if canImport(Security)
    import CountersignMemory
    import CountersignTrust
    import Foundation

    /// One request in progress over URLSession, and its response.
    final class SessionTransfer: Sendable {
        private struct State {
            var task: URLSessionTask?
            var progress = TransferProgress()
            /// Data received while the task was being suspended: URLSession does not deliver it again.
            var pending: [UInt8] = []
            var upload: StreamedUpload?
            /// Why the transport cancelled the task.
            var own: TransportError.Cause?
            var isAnswered = false
            var end: Result<Void, TransportError>?
        }

        let request: OutgoingRequest
        let answer = ResponseChannel()
        private let report: @Sendable (TransferProgress) -> Void
        private let state = Locked(State())

        init(_ request: OutgoingRequest, report: @escaping @Sendable (TransferProgress) -> Void) {
            self.request = request
            self.report = report
        }

        func task(in session: URLSession, request prepared: URLRequest) -> URLSessionTask {
            let task: URLSessionTask =
                switch request.body {
                case .none: session.dataTask(with: prepared)
                case .bytes(let bytes): session.uploadTask(with: prepared, from: Data(bytes))
                case .replayable, .once: session.uploadTask(withStreamedRequest: prepared)
                }
            // The caller may have been cancelled before there was a task to cancel.
            let isCancelled = state.with { state in
                state.task = task
                return state.own != nil
            }
            if isCancelled { task.cancel() }
            return task
        }

        /// The body from its start; nil if it can be sent only once and was sent before.
        func bodyStream() -> InputStream? {
            let write: BodyWriter?
            let length: BodyLength
            switch request.body {
            case .none, .bytes: return nil
            case .replayable(let body): (write, length) = (body.write, body.length)
            case .once(let body): (write, length) = (body.take(), body.length)
            }
            guard let write else {
                cancel(.bodyUsedUp)
                return nil
            }
            let (upload, stream) = StreamedUpload.begin(length: length, write: write) { [weak self] why in
                self?.cancel(.body(why))
            }
            let earlier = state.with { state in
                defer { state.upload = upload }
                return state.upload
            }
            earlier?.finish()
            return stream
        }

        func note(sent: Int64, of total: Int64) {
            let progress = state.with { state in
                state.progress.sent = sent
                if total >= 0 { state.progress.toSend = .bytes(total) }
                return state.progress
            }
            report(progress)
        }

        func begin(_ response: HTTPURLResponse) {
            state.with { state in
                state.isAnswered = true
                let count = response.expectedContentLength
                if count >= 0 { state.progress.toReceive = .bytes(count) }
            }
            let fields = response.allHeaderFields.map { HeaderField("\($0.key)", value: "\($0.value)") }
            answer.deliver(ResponseChannel.Head(status: response.statusCode, fields: fields))
            answer.wake()
        }

        func take(_ piece: Data) {
            let progress = state.with { state in
                state.progress.received += Int64(piece.count)
                if !state.pending.isEmpty {
                    state.pending += piece
                } else if piece.withUnsafeBytes({ answer.deliver($0) }) == .full {
                    state.pending = Array(piece)
                    state.task?.suspend()
                }
                return state.progress
            }
            answer.wake()
            report(progress)
        }

        /// The reader has room again.
        func resume() {
            let end = state.with { state -> Result<Void, TransportError>? in
                guard !state.pending.isEmpty else { return nil }
                _ = state.pending.withUnsafeBytes { answer.deliver($0) }
                state.pending = []
                state.task?.resume()
                return state.end
            }
            answer.wake()
            if let end { answer.finish(end) }
        }

        func cancel(_ cause: TransportError.Cause = .cancelled) {
            let task = state.with { state in
                if state.own == nil { state.own = cause }
                return state.task
            }
            task?.cancel()
        }

        /// Called when URLSession has finished. A reason that the transport recorded takes precedence over
        /// URLSession's error.
        func end(error: URLError?, refused: Trust.Verdict?, isReplaced: Bool) {
            let (upload, end) = state.with { state -> (StreamedUpload?, Result<Void, TransportError>?) in
                let failure = error.map { error in
                    error.code == .cancelled
                        ? .cancelled(
                            cause: state.own, refused: refused, isReplaced: isReplaced,
                            isAnswered: state.isAnswered)
                        : TransportError(error, isAnswered: state.isAnswered)
                }
                let end: Result<Void, TransportError> = failure.map { .failure($0) } ?? .success(())
                state.end = end
                state.task = nil
                defer { state.upload = nil }
                return (state.upload, state.pending.isEmpty ? end : nil)
            }
            upload?.finish()
            if let end { answer.finish(end) }
        }
    }

    /// The body of a response. The transfer ends when the app releases it.
    final class SessionTransferBody: BodySource {
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

    /// Forwards URLSession's callbacks to the transfer that they concern. Called on one queue.
    final class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        private struct State {
            var transfers: [Int: SessionTransfer] = [:]
            /// URLSession reports a refusal only as a cancelled task. The type has its full name because
            /// macOS also has a `Host`.
            var refused: [Trust.Host: Trust.Verdict] = [:]
            var isReplaced = false
        }

        private let judge: ChallengeJudge
        private let state = Locked(State())

        init(_ judge: ChallengeJudge) { self.judge = judge }

        func add(_ transfer: SessionTransfer, task: Int) { state.with { $0.transfers[task] = transfer } }

        func noteReplaced() { state.with { $0.isReplaced = true } }

        private func transfer(_ task: URLSessionTask) -> SessionTransfer? {
            state.with { $0.transfers[task.taskIdentifier] }
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let answer = judge.answer(challenge.protectionSpace)
            if let verdict = answer.verdict {
                state.with { $0.refused[verdict.host] = verdict.isAccepted ? nil : verdict }
            }
            completionHandler(answer.disposition, answer.credential)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            completionHandler(nil)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) {
            completionHandler(transfer(task)?.bodyStream())
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
            totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) {
            transfer(task)?.note(sent: totalBytesSent, of: totalBytesExpectedToSend)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            guard let response = response as? HTTPURLResponse else { return completionHandler(.cancel) }
            transfer(dataTask)?.begin(response)
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            transfer(dataTask)?.take(data)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
        {
            let (transfer, refused, isReplaced) = state.with { state in
                let transfer = state.transfers.removeValue(forKey: task.taskIdentifier)
                return (
                    transfer, transfer.flatMap { state.refused[$0.request.origin.host] }, state.isReplaced
                )
            }
            transfer?.end(error: error as? URLError, refused: refused, isReplaced: isReplaced)
        }
    }
#endif
