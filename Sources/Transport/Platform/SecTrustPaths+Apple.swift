#if canImport(Security)
    import CountersignTrust
    import Foundation
    import Security

    /// Checks chains with Security, on the handshake's own object: it holds what the server stapled. Used by one thread at a time, which
    /// is what makes passing it on sound. Source: RFC 5280 §6.1; Apple, Certificate, Key, and Trust Services.
    final class SecTrustPaths: Trust.PathValidation, @unchecked Sendable {
        private let handshake: SecTrust
        private let authorities: TransportOptions.Authorities

        init(_ handshake: SecTrust, _ authorities: TransportOptions.Authorities) {
            self.handshake = handshake
            self.authorities = authorities
            // What a server left out is not fetched: a handshake would wait for it.
            SecTrustSetNetworkFetchAllowed(handshake, false)
        }

        /// The certificates from the server's own on, as far as Security has them: those that were sent, and an authority's where it found
        /// one. Empty where one is not understood.
        var served: [Trust.Certificate] { (try? certificates()) ?? [] }

        func path(for served: [Trust.Certificate], to anchors: Trust.Anchors, at time: Int64) throws(Trust.PathProblem)
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
            guard SecTrustEvaluateWithError(handshake, &error) else { throw problem(error, served) }
            return try certificates()
        }

        private func end(in anchors: [Trust.Certificate]) throws(Trust.PathProblem) {
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

        private func certificates() throws(Trust.PathProblem) -> [Trust.Certificate] {
            guard let chain = SecTrustCopyCertificateChain(handshake) as? [SecCertificate] else { throw .noCertificate }
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

        private func problem(_ error: CFError?, _ served: [Trust.Certificate]) -> Trust.PathProblem {
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
