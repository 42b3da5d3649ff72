#if canImport(Security)
    import CountersignTrust
    import Foundation
    import Security

    /// Pins a URLSession of one's own: `URLSession(configuration: …, delegate: PinningDelegate(trust: trust), delegateQueue: nil)`.
    ///
    /// A session belongs to the trust that its delegate was made with: for another one, make another session, and invalidate the old.
    /// Whoever has a delegate already hands its challenges to ``answer(_:)``.
    ///
    /// Safe to share: not changed after `init`.
    public final class PinningDelegate: NSObject, URLSessionDelegate, @unchecked Sendable {
        private let judge: ChallengeJudge

        /// `observe` is told of each verdict that is not plain acceptance, on the session's queue: it must not wait.
        public init(
            trust: Trust, clock: DeviceClock = .system, observe: @escaping @Sendable (Trust.Verdict) -> Void = { _ in }
        ) {
            var options = TransportOptions()
            options.clock = clock
            options.observe = observe
            judge = ChallengeJudge(trust, options)
        }

        /// What to tell URLSession: a server goes on only where the trust accepts it; challenges of other kinds are not ours.
        public func answer(
            _ challenge: URLAuthenticationChallenge
        ) -> (disposition: URLSession.AuthChallengeDisposition, credential: URLCredential?) {
            let answer = judge.answer(challenge.protectionSpace)
            return (answer.disposition, answer.credential)
        }

        /// What is to be said of a server whose handshake `handshake` is from; nil where `host` is none. For libraries that ask with that.
        public func judge(_ handshake: SecTrust, for host: String) -> Trust.Verdict? { judge.verdict(handshake, host) }

        /// URLSession asks.
        public func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let (disposition, credential) = answer(challenge)
            completionHandler(disposition, credential)
        }
    }

    /// Judges a server when URLSession asks about it, in the handshake and before a byte of the request.
    struct ChallengeJudge: Sendable {
        private let trust: Trust
        private let options: TransportOptions

        init(_ trust: Trust, _ options: TransportOptions) {
            self.trust = trust
            self.options = options
        }

        func answer(
            _ space: URLProtectionSpace
        ) -> (disposition: URLSession.AuthChallengeDisposition, credential: URLCredential?, verdict: Trust.Verdict?) {
            guard space.authenticationMethod == NSURLAuthenticationMethodServerTrust else {
                return (.performDefaultHandling, nil, nil)
            }
            guard let handshake = space.serverTrust, let verdict = verdict(handshake, space.host) else {
                return (.cancelAuthenticationChallenge, nil, nil)
            }
            guard verdict.isAccepted else { return (.cancelAuthenticationChallenge, nil, verdict) }
            return (.useCredential, URLCredential(trust: handshake), verdict)
        }

        /// Nil where `host` is none.
        func verdict(_ handshake: SecTrust, _ host: String) -> Trust.Verdict? {
            guard let host = try? CountersignTrust.Host(host) else { return nil }
            let paths = SecTrustPaths(handshake, options.authorities)
            let verdict = trust.judge(
                Trust.Evidence(host: host, served: paths.served, time: options.clock.wall(), paths: paths))
            if verdict.decision != .accepted { options.observe(verdict) }
            return verdict
        }
    }
#endif
