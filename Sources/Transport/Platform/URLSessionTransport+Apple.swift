#if canImport(Security)
    import CountersignMemory
    import CountersignTrust
    import Foundation

    /// Sends requests over URLSession, to servers that a ``Trust`` accepts: what carries them on Apple's platforms.
    ///
    /// Follows no redirect, asks no proxy that was not named, keeps no cookies, no credentials and no answers. What is signed goes out as
    /// it stands: the URL's characters, the fields' values and the body. What URLSession keeps to itself is the order and the case of
    /// fields, fields of its own that are not signed (`User-Agent`, `Accept-Language`), the version of HTTP, and that it may repeat a
    /// request of a safe method on a new connection when one that it had kept turns out to be closed.
    ///
    /// A certificate that is pinned and that no authority of the machine has issued needs an exception in the app's Info.plist, too:
    /// App Transport Security judges for itself. Source: Apple, NSAppTransportSecurity.
    public final class URLSessionTransport: Carrier {
        private let options: TransportOptions
        private let current: Locked<SessionGeneration>

        /// Refused are options that URLSession has nothing for: `addresses`, and before iOS 17 and macOS 14 a proxy.
        /// `connectTimeout` is part of the idle one there.
        public init(trust: Trust, options: TransportOptions = TransportOptions()) throws(TransportError) {
            guard options.addresses.isEmpty else {
                throw TransportError(.machine("URLSession asks the DNS; it cannot be told addresses"), .notSent)
            }
            if case .tunnel = options.proxy {
                guard #available(macOS 14, iOS 17, *) else {
                    throw TransportError(.machine("URLSession takes a proxy from iOS 17 and macOS 14 on"), .notSent)
                }
            }
            self.options = options
            current = Locked(SessionGeneration(trust, options))
        }

        deinit { current.with { $0.closeWhenIdle() } }

        /// Sends `request` and waits for the head of the answer.
        ///
        /// Cancelling the task ends the transfer. `progress` is called on the session's queue and must not wait.
        public func send(
            _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
        ) async throws(TransportError) -> IncomingResponse {
            if let flaw = request.flaw { throw TransportError(.malformedRequest(flaw), .notSent) }
            let prepared = try URLRequest(request)
            let transfer = SessionTransfer(request, progress)
            let result = await withTaskCancellationHandler {
                // Under the lock: a session that was invalidated meanwhile takes no tasks, and says so by ending the process.
                current.with { $0.start(transfer, prepared) }
                return await transfer.answer.head()
            } onCancel: {
                transfer.cancel()
            }
            let head = try result.get()
            return IncomingResponse(
                status: head.status, fields: head.fields, body: ResponseBody(SessionReading(transfer)))
        }

        /// Puts another trust in force. Every connection that was made under the old one is cut, with what is on its way on it, and with
        /// what waits for its turn.
        public func replaceTrust(by trust: Trust) {
            let new = SessionGeneration(trust, options)
            let old = current.with { current in
                defer { current = new }
                return current
            }
            old.cut()
        }
    }

    /// What carries requests on this platform.
    public typealias PlatformTransport = URLSessionTransport
#endif
