#if canImport(Security)
    import CountersignMemory
    import CountersignTrust
    import Foundation

    extension TransportError {
        /// A task that was cancelled: by us, for its server's sake, or with all others.
        static func cancelled(
            _ own: Cause?, _ refused: Trust.Verdict?, _ isReplaced: Bool, _ isAnswered: Bool
        ) -> TransportError {
            let fate: Fate = isAnswered ? .brokenOff : .outcomeUnknown
            if let own { return TransportError(own, fate) }
            if isReplaced { return TransportError(.trustReplaced, fate) }
            if let refused { return TransportError(.untrusted(refused), .notSent) }
            return TransportError(.cancelled, fate)
        }

        /// URLSession's errors in the transport's words. Source: Apple, URLError.Code.
        init(_ error: URLError, isAnswered: Bool) {
            let after: Fate = isAnswered ? .brokenOff : .outcomeUnknown
            switch error.code {
            case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive:
                self.init(.offline, .notSent)
            case .cannotFindHost, .dnsLookupFailed: self.init(.hostNotFound, .notSent)
            case .cannotConnectToHost: self.init(.connectionRefused, .notSent)
            case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
                .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
                .clientCertificateRequired, .appTransportSecurityRequiresSecureConnection:
                self.init(.tls(error.localizedDescription), .notSent)
            case .timedOut: self.init(.timedOut(.idle), after)
            case .badServerResponse, .cannotParseResponse:
                self.init(.malformedAnswer(error.localizedDescription), after)
            default: self.init(.connectionLost(error.localizedDescription), after)
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
                // Joined as a signature joins them; URLSession would do it without the space. Source: RFC 9421 §2.1.
                let earlier = self.value(forHTTPHeaderField: field.name).map { $0 + ", " } ?? ""
                setValue(earlier + value, forHTTPHeaderField: field.name)
            }
            // An answer that is packed would be unpacked on its way to us, and no longer be what its digest is of.
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
            TransportError(.malformedRequest(why), .notSent)
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
