#if canImport(Security)
    import CountersignMemory
    import CountersignTrust
    import Foundation
    import Network
    import Security

    /// Sends requests over URLSession, to servers that a ``Trust`` accepts: what carries them on Apple's
    /// platforms.
    ///
    /// Follows no redirect, asks no proxy that was not named, keeps no cookies, no credentials and no
    /// answers. What is signed goes out as it stands: the URL's characters, the fields' values and the body.
    /// What URLSession keeps to itself is the order and the case of fields, fields of its own that are not
    /// signed (`User-Agent`, `Accept-Language`), the version of HTTP, and that it may repeat a request of a
    /// safe method on a new connection when one that it had kept turns out to be closed.
    ///
    /// A certificate that is pinned and that no authority of the machine has issued needs an exception in the
    /// app's Info.plist, too: App Transport Security judges for itself. Source: Apple,
    /// NSAppTransportSecurity.
    public final class URLSessionTransport: RequestTransport {
        private let options: TransportOptions
        private let current: Locked<SessionGeneration>

        /// Refused are options that URLSession has nothing for: `addresses`, and before iOS 17 and macOS 14 a
        /// proxy. `connectTimeout` is part of the idle one there.
        public init(trust: Trust, options: TransportOptions = TransportOptions()) throws(TransportError) {
            guard options.addresses.isEmpty else {
                throw TransportError(
                    .machine("URLSession asks the DNS; it cannot be told addresses"), fate: .notSent)
            }
            if case .tunnel = options.proxy {
                guard #available(macOS 14, iOS 17, *) else {
                    throw TransportError(
                        .machine("URLSession takes a proxy from iOS 17 and macOS 14 on"), fate: .notSent)
                }
            }
            self.options = options
            current = Locked(SessionGeneration(trust: trust, options: options))
        }

        deinit { current.with { $0.closeWhenIdle() } }

        /// Sends `request` and waits for the head of the answer.
        ///
        /// Cancelling the task ends the transfer. `progress` is called on the session's queue and must not
        /// wait.
        public func send(
            _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
        ) async throws(TransportError) -> IncomingResponse {
            if let flaw = request.flaw { throw TransportError(.malformedRequest(flaw), fate: .notSent) }
            let prepared = try URLRequest(request)
            let transfer = SessionTransfer(request, report: progress)
            let result = await withTaskCancellationHandler {
                // Under the lock: a session that was invalidated meanwhile takes no tasks, and says so by
                // ending the process.
                current.with { $0.start(transfer, request: prepared) }
                return await transfer.answer.head()
            } onCancel: {
                transfer.cancel()
            }
            let head = try result.get()
            return IncomingResponse(
                status: head.status, fields: head.fields, body: ResponseBody(SessionTransferBody(transfer)))
        }

        /// Puts another trust in force. Every connection that was made under the old one is cut, with what is
        /// on its way on it, and with what waits for its turn.
        public func replaceTrust(by trust: Trust) {
            let new = SessionGeneration(trust: trust, options: options)
            let old = current.with { current in
                defer { current = new }
                return current
            }
            old.cut()
        }
    }

    /// What carries requests on this platform.
    public typealias PlatformTransport = URLSessionTransport

    /// The connections that one trust has judged: a session of URLSession, which shares none with another.
    final class SessionGeneration: Sendable {
        private let session: URLSession
        private let delegate: SessionDelegate

        init(trust: Trust, options: TransportOptions) {
            delegate = SessionDelegate(ChallengeJudge(trust: trust, options: options))
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            session = URLSession(
                configuration: SessionGeneration.configuration(options), delegate: delegate,
                delegateQueue: queue)
        }

        func start(_ transfer: SessionTransfer, request: URLRequest) {
            let task = transfer.task(in: session, request: request)
            delegate.add(transfer, task: task.taskIdentifier)
            task.resume()
        }

        func closeWhenIdle() { session.finishTasksAndInvalidate() }

        func cut() {
            delegate.noteReplaced()
            session.invalidateAndCancel()
        }

        private static func configuration(_ options: TransportOptions) -> URLSessionConfiguration {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpCookieStorage = nil
            configuration.httpShouldSetCookies = false
            configuration.httpCookieAcceptPolicy = .never
            configuration.urlCache = nil
            configuration.urlCredentialStorage = nil
            configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
            configuration.waitsForConnectivity = false
            configuration.httpMaximumConnectionsPerHost = max(options.concurrentRequests, 1)
            configuration.timeoutIntervalForRequest = options.idleTimeout.interval
            configuration.timeoutIntervalForResource = options.totalTimeout.interval
            // Not the machine's, whatever its settings say.
            configuration.connectionProxyDictionary = [:]
            // Before that, `URLSessionTransport` has refused the option.
            if #available(macOS 14, iOS 17, *), case .tunnel(let host, let port) = options.proxy,
                let port = NWEndpoint.Port(rawValue: port)
            {
                let proxy = NWEndpoint.hostPort(host: NWEndpoint.Host(host.description), port: port)
                configuration.proxyConfigurations = [ProxyConfiguration(httpCONNECTProxy: proxy)]
            }
            return configuration
        }
    }

    extension TransportOptions.Limit {
        /// In seconds; a year stands for no limit, as URLSession has none.
        fileprivate var interval: TimeInterval {
            switch self {
            case .within(let time):
                TimeInterval(time.components.seconds) + TimeInterval(time.components.attoseconds) / 1e18
            case .unlimited: 365 * 86_400
            }
        }
    }

    extension TransportError {
        /// A task that was cancelled: by us, for its server's sake, or with all others.
        static func cancelled(cause own: Cause?, refused: Trust.Verdict?, isReplaced: Bool, isAnswered: Bool)
            -> TransportError
        {
            let fate: Fate = isAnswered ? .brokenOff : .outcomeUnknown
            if let own { return TransportError(own, fate: fate) }
            if isReplaced { return TransportError(.trustReplaced, fate: fate) }
            if let refused { return TransportError(.untrusted(refused), fate: .notSent) }
            return TransportError(.cancelled, fate: fate)
        }

        /// URLSession's errors in the transport's words. Source: Apple, URLError.Code.
        init(_ error: URLError, isAnswered: Bool) {
            let after: Fate = isAnswered ? .brokenOff : .outcomeUnknown
            switch error.code {
            case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive:
                self.init(.offline, fate: .notSent)
            case .cannotFindHost, .dnsLookupFailed: self.init(.hostNotFound, fate: .notSent)
            case .cannotConnectToHost: self.init(.connectionRefused, fate: .notSent)
            case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
                .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
                .clientCertificateRequired, .appTransportSecurityRequiresSecureConnection:
                self.init(.tls(error.localizedDescription), fate: .notSent)
            case .timedOut: self.init(.timedOut(.idle), fate: after)
            case .badServerResponse, .cannotParseResponse:
                self.init(.malformedAnswer(error.localizedDescription), fate: after)
            default: self.init(.connectionLost(error.localizedDescription), fate: after)
            }
        }
    }

    extension URLRequest {
        /// The request as it stands; refused where URLSession would send another one.
        init(_ request: OutgoingRequest) throws(TransportError) {
            guard request.authority == request.origin.authority else {
                throw .unsendable("authority: URLSession sends the URL's, and no other")
            }
            let text = request.origin.description + String(decoding: request.target, as: UTF8.self)
            guard let url = URL(string: text), url.absoluteString == text else {
                throw .unsendable("target: URLSession would spell it differently")
            }
            self.init(url: url)
            httpMethod = request.method
            for field in request.fields {
                guard let value = String(utf8: field.value) else {
                    throw .unsendable("field `\(field.name)`: URLSession takes text only")
                }
                // Joined as a signature joins them; URLSession would do it without the space. Source: RFC
                // 9421 §2.1.
                let earlier = self.value(forHTTPHeaderField: field.name).map { $0 + ", " } ?? ""
                setValue(earlier + value, forHTTPHeaderField: field.name)
            }
            // An answer that is packed would be unpacked on its way to us, and no longer be what its digest
            // is of.
            if self.value(forHTTPHeaderField: "Accept-Encoding") == nil {
                setValue("identity", forHTTPHeaderField: "Accept-Encoding")
            }
            if case .bytes(let count)? = request.body.streamedLength {
                setValue("\(count)", forHTTPHeaderField: "Content-Length")
            }
        }
    }

    extension TransportError {
        fileprivate static func unsendable(_ why: String) -> TransportError {
            TransportError(.malformedRequest(why), fate: .notSent)
        }
    }

    extension RequestBody {
        /// A stream's; nil for other bodies, whose length URLSession knows.
        fileprivate var streamedLength: BodyLength? {
            switch self {
            case .none, .bytes: nil
            case .replayable(let body): body.length
            case .once(let body): body.length
            }
        }
    }
#endif
