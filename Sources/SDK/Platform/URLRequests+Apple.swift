#if canImport(Security)
    import CountersignMemory
    import CountersignTransport
    import Foundation

    extension APIRequest {
        /// Takes the method, URL, fields and body of a Foundation request. The client ignores its time-out
        /// and cache policy. Throws for a body that is a stream, which must be named as one (``Body``), and
        /// for a request without a URL.
        public init(_ request: URLRequest) throws(CountersignError) {
            guard let url = request.url else { throw .misuse("URLRequest: expected a URL") }
            guard request.httpBodyStream == nil else {
                throw .misuse(
                    "URLRequest: a stream as its body; give it as APIRequest.Body.once or .replayable")
            }
            let fields = (request.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
            let body = request.httpBody.map { Body.bytes(Array($0)) } ?? .none
            self.init(
                APIMethod(request.httpMethod ?? "GET"), url,
                fields: fields.map { HeaderField($0.key, value: $0.value) },
                body: body)
        }
    }

    extension CountersignClient {
        /// The same as ``data(for:progress:)`` for a Foundation request.
        public func data(for request: URLRequest) async throws(CountersignError) -> (Data, APIResponse) {
            try await data(for: APIRequest(request))
        }

        /// A Foundation request, signed as it would be sent now.
        public func signed(_ request: URLRequest) async throws(CountersignError) -> URLRequest {
            let own = try APIRequest(request)
            return try await signed(own).urlRequest()
        }
    }

    extension SignedRequest {
        /// The request for Foundation, to be sent by the app's own URLSession; pin that with
        /// ``CountersignTransport/PinningDelegate``. It does not contain a file or a stream: pass that to the
        /// upload task. Throws if Foundation would send other bytes than were signed.
        public func urlRequest() throws(CountersignError) -> URLRequest {
            var request = try URLRequest(method, exactly: url)
            for field in fields {
                let value = try field.text()
                // Joined as the signature joins them; Foundation would leave out the space. Source: RFC 9421
                // §2.1.
                let earlier = request.value(forHTTPHeaderField: field.name).map { $0 + ", " } ?? ""
                request.setValue(earlier + value, forHTTPHeaderField: field.name)
            }
            if case .bytes(let bytes) = body { request.httpBody = Data(bytes) }
            return request
        }
    }

    extension UploadTicket {
        /// The request for Foundation, without the body. Throws if Foundation would send another URL than the
        /// ticket is bound to.
        public func urlRequest() throws(CountersignError) -> URLRequest {
            var request = try URLRequest(method, exactly: url)
            for field in fields {
                let value = try field.text()
                request.setValue(value, forHTTPHeaderField: field.name)
            }
            return request
        }

        /// A task of `session` that uploads `file`, whose digest the ticket was issued for; it begins with
        /// `resume()`. The session may be a background session, which sends it while the app does not run:
        /// make it with a ``CountersignTransport/PinningDelegate``, or pass its challenges to one.
        public func uploadTask(
            in session: URLSession, fromFile file: URL
        ) throws(CountersignError) -> URLSessionUploadTask {
            session.uploadTask(with: try urlRequest(), fromFile: file)
        }
    }

    extension URLRequest {
        fileprivate init(_ method: APIMethod, exactly url: String) throws(CountersignError) {
            guard let address = URL(string: url), address.absoluteString == url else {
                throw .misuse("URL: Foundation would spell it differently")
            }
            self.init(url: address)
            httpMethod = method.description
        }
    }

    extension HeaderField {
        fileprivate func text() throws(CountersignError) -> String {
            guard let text = String(utf8: value) else {
                throw .misuse("field `\(name)`: Foundation takes text only")
            }
            return text
        }
    }
#endif
