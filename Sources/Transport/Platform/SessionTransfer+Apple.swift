#if canImport(Security)
    import CountersignMemory
    import CountersignTrust
    import Foundation

    /// One request on its way over URLSession, and its answer.
    final class SessionTransfer: Sendable {
        private struct State {
            var task: URLSessionTask?
            var progress = TransferProgress()
            /// What came while the task was being suspended: URLSession does not bring it again.
            var pending: [UInt8] = []
            var upload: StreamedUpload?
            /// Why we cancelled it ourselves.
            var own: TransportError.Cause?
            var isAnswered = false
            var end: Result<Void, TransportError>?
        }

        let request: OutgoingRequest
        let answer = AnswerChannel()
        private let report: @Sendable (TransferProgress) -> Void
        private let state = Locked(State())

        init(_ request: OutgoingRequest, _ report: @escaping @Sendable (TransferProgress) -> Void) {
            self.request = request
            self.report = report
        }

        func task(in session: URLSession, _ prepared: URLRequest) -> URLSessionTask {
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

        /// The body from its beginning; nil where it was sent before and can be sent once only.
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
            let (upload, stream) = StreamedUpload.begin(length, write) { [weak self] why in self?.cancel(.body(why)) }
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
            let fields = response.allHeaderFields.map { HeaderField("\($0.key)", "\($0.value)") }
            answer.deliver(AnswerChannel.Head(status: response.statusCode, fields: fields))
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

        /// URLSession is done with it. What it was for another reason than its error says is told first.
        func end(_ error: URLError?, _ refused: Trust.Verdict?, _ isReplaced: Bool) {
            let (upload, end) = state.with { state -> (StreamedUpload?, Result<Void, TransportError>?) in
                let failure = error.map { error in
                    error.code == .cancelled
                        ? .cancelled(state.own, refused, isReplaced, state.isAnswered)
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
#endif
