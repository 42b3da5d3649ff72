#if canImport(Security)
    import CountersignMemory
    import CountersignTrust
    import Foundation

    /// What URLSession tells, handed to the transfer that it is about. Called on one queue.
    final class SessionDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        private struct State {
            var transfers: [Int: SessionTransfer] = [:]
            /// URLSession says no more of a refusal than that the task was cancelled. The type is named in full: macOS has a `Host`, too.
            var refused: [CountersignTrust.Host: Trust.Verdict] = [:]
            var isReplaced = false
        }

        private let judge: ChallengeJudge
        private let state = Locked(State())

        init(_ judge: ChallengeJudge) { self.judge = judge }

        func add(_ transfer: SessionTransfer, _ task: Int) { state.with { $0.transfers[task] = transfer } }

        func noteReplaced() { state.with { $0.isReplaced = true } }

        private func transfer(_ task: URLSessionTask) -> SessionTransfer? {
            state.with { $0.transfers[task.taskIdentifier] }
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
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
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
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

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let (transfer, refused, isReplaced) = state.with { state in
                let transfer = state.transfers.removeValue(forKey: task.taskIdentifier)
                return (transfer, transfer.flatMap { state.refused[$0.request.origin.host] }, state.isReplaced)
            }
            transfer?.end(error as? URLError, refused, isReplaced)
        }
    }
#endif
