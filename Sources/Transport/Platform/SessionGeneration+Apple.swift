#if canImport(Security)
    import CountersignTrust
    import Foundation
    import Network
    import Security

    /// The connections that one trust has judged: a session of URLSession, which shares none with another.
    final class SessionGeneration: Sendable {
        private let session: URLSession
        private let delegate: SessionDelegate

        init(_ trust: Trust, _ options: TransportOptions) {
            delegate = SessionDelegate(ChallengeJudge(trust, options))
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            session = URLSession(
                configuration: SessionGeneration.configuration(options), delegate: delegate, delegateQueue: queue)
        }

        func start(_ transfer: SessionTransfer, _ request: URLRequest) {
            let task = transfer.task(in: session, request)
            delegate.add(transfer, task.taskIdentifier)
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
#endif
