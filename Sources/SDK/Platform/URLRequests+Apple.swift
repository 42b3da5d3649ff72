#if canImport(Security)
    import CountersignMemory
    import CountersignTransport
    import Foundation

    extension APIRequest {
        /// What a request of Foundation's asks for: its method, URL, fields and body. Its time-out and its cache policy are the client's
        /// matter. Refused are a body that is a stream, which has to be named as one (``Body``), and a request without a URL.
        public init(_ request: URLRequest) throws(CountersignError) {
            guard let url = request.url else { throw .misuse("URLRequest: expected a URL") }
            guard request.httpBodyStream == nil else {
                throw .misuse("URLRequest: a stream as its body; give it as APIRequest.Body.once or .replayable")
            }
            let fields = (request.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
            let body = request.httpBody.map { Body.bytes(Array($0)) } ?? .none
            self.init(
                APIMethod(request.httpMethod ?? "GET"), url, fields: fields.map { HeaderField($0.key, $0.value) },
                body: body)
        }
    }

    extension CountersignClient {
        /// The same as ``data(for:progress:)`` for a request of Foundation's.
        public func data(for request: URLRequest) async throws(CountersignError) -> (Data, APIResponse) {
            try await data(for: APIRequest(request))
        }

        /// A request of Foundation's, signed as it would be sent now.
        public func signed(_ request: URLRequest) async throws(CountersignError) -> URLRequest {
            let own = try APIRequest(request)
            return try await signed(own).urlRequest()
        }
    }

    extension SignedRequest {
        /// As Foundation has it, for a URLSession of one's own; pin that with ``CountersignTransport/PinningDelegate``. A file or a stream is
        /// not in it: hand it to the upload task. Refused where Foundation would send other bytes than were signed.
        public func urlRequest() throws(CountersignError) -> URLRequest {
            guard let address = URL(string: url), address.absoluteString == url else {
                throw .misuse("URL: Foundation would spell it differently")
            }
            var request = URLRequest(url: address)
            request.httpMethod = method.description
            for field in fields {
                guard let value = String(utf8: field.value) else {
                    throw .misuse("field `\(field.name)`: Foundation takes text only")
                }
                // Joined as the signature joins them; Foundation would do it without the space. Source: RFC 9421 §2.1.
                let earlier = request.value(forHTTPHeaderField: field.name).map { $0 + ", " } ?? ""
                request.setValue(earlier + value, forHTTPHeaderField: field.name)
            }
            if case .bytes(let bytes) = body { request.httpBody = Data(bytes) }
            return request
        }
    }
#endif
