#if canImport(Security)
    import CountersignMemory
    import CountersignTrust
    import Foundation
    import Network
    import Security

    /// Sends requests over URLSession to servers that a ``Trust`` accepts: the transport of Apple's
    /// platforms.
    ///
    /// It follows no redirect, uses only a configured proxy, and stores no cookies, credentials or responses.
    /// It sends signed parts unchanged: the URL's characters, the fields' values and the body. URLSession
    /// itself decides the order and the case of fields, its own unsigned fields (`User-Agent`,
    /// `Accept-Language`) and the version of HTTP, and may repeat a request with a safe method if a reused
    /// connection was closed.
    ///
    /// A pinned certificate that none of the system's authorities has issued also needs an exception in the
    /// app's Info.plist: App Transport Security makes its own check. Source: Apple, NSAppTransportSecurity.
    public final class URLSessionTransport: RequestTransport {
        private let options: TransportOptions
        private let current: Locked<SessionGeneration>

        /// Throws for options that URLSession does not support: `addresses`, and before iOS 17 and macOS 14 a
        /// proxy. `connectTimeout` is part of the idle time-out there.
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

        /// Sends `request` and waits for the head of the response.
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
                // Under the lock: adding a task to a session that was invalidated meanwhile would end the
                // process.
                current.with { $0.start(transfer, request: prepared) }
                return await transfer.answer.head()
            } onCancel: {
                transfer.cancel()
            }
            let head = try result.get()
            return IncomingResponse(
                status: head.status, fields: head.fields, body: ResponseBody(SessionTransferBody(transfer)))
        }

        /// Replaces the trust. Every connection made under the old one is closed together with its transfers
        /// and the waiting requests.
        public func replaceTrust(by trust: Trust) {
            let new = SessionGeneration(trust: trust, options: options)
            let old = current.with { current in
                defer { current = new }
                return current
            }
            old.cut()
        }
    }

    /// The transport of this platform.
    public typealias PlatformTransport = URLSessionTransport

    /// The connections under one trust: a session of URLSession, which shares none with another session.
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
            // No proxy from the system's settings.
            configuration.connectionProxyDictionary = [:]
            // On older systems `URLSessionTransport` has refused the option.
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
        /// In seconds; a year for no limit, which URLSession cannot express.
        fileprivate var interval: TimeInterval {
            switch self {
            case .within(let time):
                TimeInterval(time.components.seconds) + TimeInterval(time.components.attoseconds) / 1e18
            case .unlimited: 365 * 86_400
            }
        }
    }

    extension TransportError {
        /// Why a task was cancelled: by the transport, because of its server, or with all others.
        static func cancelled(cause own: Cause?, refused: Trust.Verdict?, isReplaced: Bool, isAnswered: Bool)
            -> TransportError
        {
            let fate: Fate = isAnswered ? .brokenOff : .outcomeUnknown
            if let own { return TransportError(own, fate: fate) }
            if isReplaced { return TransportError(.trustReplaced, fate: fate) }
            if let refused { return TransportError(.untrusted(refused), fate: .notSent) }
            return TransportError(.cancelled, fate: fate)
        }

        /// The cause for URLSession's error. Source: Apple, URLError.Code.
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
        /// The request for URLSession; throws if URLSession would change it.
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
                // Joined as in a signature base; URLSession would omit the space. Source: RFC
                // 9421 §2.1.
                let earlier = self.value(forHTTPHeaderField: field.name).map { $0 + ", " } ?? ""
                setValue(earlier + value, forHTTPHeaderField: field.name)
            }
            // URLSession would decompress a compressed response, whose digest would then not match.
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
        /// The length of a stream; nil for other bodies, whose length URLSession knows.
        fileprivate var streamedLength: BodyLength? {
            switch self {
            case .none, .bytes: nil
            case .replayable(let body): body.length
            case .once(let body): body.length
            }
        }
    }
#endif
