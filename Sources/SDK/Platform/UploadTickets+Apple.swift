#if canImport(Security)
    import CountersignMemory
    import CountersignTransport
    import Foundation

    extension UploadTicket {
        /// As Foundation has it, without the body. Refused where Foundation would send another URL than the
        /// ticket is bound to.
        public func urlRequest() throws(CountersignError) -> URLRequest {
            guard let address = URL(string: url),
                address.absoluteString == url
            else {
                throw .misuse("URL: Foundation would spell it differently")
            }
            var request = URLRequest(url: address)
            request.httpMethod = method.description
            for field in fields {
                guard let value = String(utf8: field.value) else {
                    throw .misuse("field `\(field.name)`: Foundation takes text only")
                }
                request.setValue(value, forHTTPHeaderField: field.name)
            }
            return request
        }

        /// A task of `session` that uploads `file`, the one whose digest the ticket was issued for; it
        /// begins with `resume()`. The session may be one of the background, which sends it while the app
        /// does not run: make it with a ``CountersignTransport/PinningDelegate``, or hand its challenges to
        /// one.
        public func uploadTask(
            in session: URLSession, fromFile file: URL
        ) throws(CountersignError) -> URLSessionUploadTask {
            session.uploadTask(with: try urlRequest(), fromFile: file)
        }
    }
#endif
