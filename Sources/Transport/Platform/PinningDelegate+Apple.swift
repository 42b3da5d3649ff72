#if canImport(Security)
    import CountersignTrust
    import Foundation
    import Security

    /// Pins a URLSession of the app's own: `URLSession(configuration: …, delegate: PinningDelegate(trust:
    /// trust), delegateQueue: nil)`.
    ///
    /// A session keeps the trust of its delegate: for another trust make another session, and invalidate the
    /// old one. An app that has a delegate already passes its challenges to ``answer(status:)``.
    ///
    /// Safe to share: not changed after `init`.
    public final class PinningDelegate: NSObject, URLSessionDelegate, @unchecked Sendable {
        private let judge: ChallengeJudge

        /// `observe` receives each verdict except `accepted`, on the session's queue: it must not wait.
        public init(
            trust: Trust, clock: DeviceClock = .system,
            observe: @escaping @Sendable (Trust.Verdict) -> Void = { _ in }
        ) {
            var options = TransportOptions()
            options.clock = clock
            options.observe = observe
            judge = ChallengeJudge(trust: trust, options: options)
        }

        /// The response for URLSession: it continues only with a server that the trust accepts. Other kinds
        /// of challenges get the default handling.
        public func answer(
            _ challenge: URLAuthenticationChallenge
        ) -> (disposition: URLSession.AuthChallengeDisposition, credential: URLCredential?) {
            let answer = judge.answer(challenge.protectionSpace)
            return (answer.disposition, answer.credential)
        }

        /// The verdict on the server of `handshake`; nil if `host` is invalid. For libraries that provide
        /// only a `SecTrust`.
        public func judge(_ handshake: SecTrust, for host: String) -> Trust.Verdict? {
            judge.verdict(on: handshake, host: host)
        }

        /// URLSession's callback.
        public func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let (disposition, credential) = answer(challenge)
            completionHandler(disposition, credential)
        }
    }

    /// Judges a server during the handshake, before a byte of the request is sent.
    struct ChallengeJudge: Sendable {
        private let trust: Trust
        private let options: TransportOptions

        init(trust: Trust, options: TransportOptions) {
            self.trust = trust
            self.options = options
        }

        func answer(
            _ space: URLProtectionSpace
        ) -> (
            disposition: URLSession.AuthChallengeDisposition, credential: URLCredential?,
            verdict: Trust.Verdict?
        ) {
            guard space.authenticationMethod == NSURLAuthenticationMethodServerTrust else {
                return (.performDefaultHandling, nil, nil)
            }
            guard let handshake = space.serverTrust, let verdict = verdict(on: handshake, host: space.host)
            else {
                return (.cancelAuthenticationChallenge, nil, nil)
            }
            guard verdict.isAccepted else { return (.cancelAuthenticationChallenge, nil, verdict) }
            return (.useCredential, URLCredential(trust: handshake), verdict)
        }

        /// Nil if `host` is invalid.
        func verdict(on handshake: SecTrust, host: String) -> Trust.Verdict? {
            guard let host = try? Trust.Host(host) else { return nil }
            let paths = SecTrustPaths(handshake, authorities: options.authorities)
            let verdict = trust.judge(
                Trust.Evidence(host: host, served: paths.served, time: options.clock.wall(), paths: paths))
            if verdict.decision != .accepted { options.observe(verdict) }
            return verdict
        }
    }

    /// Validates chains with Security on the handshake's own object, which holds the stapled OCSP response.
    /// Used by one thread at a time, so it may be passed between threads. Source: RFC 5280 §6.1; Apple,
    /// Certificate, Key, and Trust Services.
    final class SecTrustPaths: Trust.PathValidation, @unchecked Sendable {
        private let handshake: SecTrust
        private let authorities: TransportOptions.Authorities

        init(_ handshake: SecTrust, authorities: TransportOptions.Authorities) {
            self.handshake = handshake
            self.authorities = authorities
            // Missing certificates are not fetched: the handshake would wait for them.
            SecTrustSetNetworkFetchAllowed(handshake, false)
        }

        /// The certificates that Security has, the server's own first: those that the server sent and, if
        /// found, the authority's. Empty if one cannot be parsed.
        var served: [Trust.Certificate] { (try? certificates()) ?? [] }

        func path(for served: [Trust.Certificate], to anchors: Trust.Anchors, at time: Int64) throws(Trust
            .PathError)
            -> [Trust.Certificate]
        {
            // No name: the trust compares names itself, the same way on all platforms.
            SecTrustSetPolicies(handshake, SecPolicyCreateSSL(true, nil))
            SecTrustSetVerifyDate(handshake, NSDate(timeIntervalSince1970: TimeInterval(time)) as CFDate)
            switch (anchors, authorities) {
            case (.only(let ends), _), (.system, .instead(let ends)): try end(in: ends)
            case (.system, .machine):
                SecTrustSetAnchorCertificates(handshake, nil)
                SecTrustSetAnchorCertificatesOnly(handshake, false)
            }
            var error: CFError?
            guard SecTrustEvaluateWithError(handshake, &error) else {
                throw pathError(from: error, served: served)
            }
            return try certificates()
        }

        private func end(in anchors: [Trust.Certificate]) throws(Trust.PathError) {
            let known = NSMutableArray()
            for anchor in anchors {
                let der = NSData(bytes: anchor.der, length: anchor.der.count)
                guard let certificate = SecCertificateCreateWithData(nil, der as CFData) else {
                    throw .other("a pinned certificate is not understood")
                }
                known.add(certificate)
            }
            SecTrustSetAnchorCertificates(handshake, known as CFArray)
            SecTrustSetAnchorCertificatesOnly(handshake, true)
        }

        private func certificates() throws(Trust.PathError) -> [Trust.Certificate] {
            guard let chain = SecTrustCopyCertificateChain(handshake) as? [SecCertificate] else {
                throw .noCertificate
            }
            var found: [Trust.Certificate] = []
            for certificate in chain {
                let der = SecCertificateCopyData(certificate) as NSData
                guard let parsed = try? Trust.Certificate(der: Array(der as Data)) else {
                    throw .other("a certificate of the chain is not understood")
                }
                found.append(parsed)
            }
            return found
        }

        private func pathError(from error: CFError?, served: [Trust.Certificate]) -> Trust.PathError {
            guard let error else { return .other("no reason was given") }
            switch OSStatus(truncatingIfNeeded: CFErrorGetCode(error)) {
            case errSecCertificateExpired: return .expired
            case errSecCertificateNotValidYet: return .notYetValid
            case errSecCertificateRevoked: return .revoked
            case errSecInvalidExtendedKeyUsage: return .notForServers
            case errSecNotTrusted, errSecCreateChainFailed:
                return served.count == 1 && served[0].isSelfIssued ? .selfSigned : .noPathToAuthority
            case let code: return .other("errSec \(code)")
            }
        }
    }
#endif
