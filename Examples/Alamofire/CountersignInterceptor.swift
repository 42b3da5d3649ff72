// Signs Alamofire's requests and pins its servers. Written for Alamofire 5.10. This repository compiles it
// against stub declarations and never runs it, because Alamofire is no dependency of the package.
//
//     let session = Session(
//         interceptor: CountersignInterceptor(client: client),
//         serverTrustManager: ServerTrustManager(
//             evaluators: ["api.example.com": CountersignEvaluator(trust: trust)]))
//     let notes = try await session.request("https://api.example.com/notes")
//         .validate().serializingData().value
//
// Without `validate()`, Alamofire does not treat a 401 as a failure: it does not call `retry`, and an expired
// token is not renewed.
import Alamofire
import Countersign
import Foundation
import Security

/// Each request leaves with its own signature and nonce: Alamofire asks again for each attempt, so that none
/// is sent twice.
struct CountersignInterceptor: RequestInterceptor {
    let client: CountersignClient

    func adapt(
        _ urlRequest: URLRequest, for session: Session,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
        Task {
            do {
                completion(.success(try await client.signed(urlRequest)))
            } catch {
                completion(.failure(error))
            }
        }
    }

    /// An expired token is renewed, and the request is signed anew and sent once more. After other failures
    /// the client cannot tell whether the request was received, and repeats it only if that does no harm.
    func retry(
        _ request: Request, for session: Session, dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
    ) {
        guard request.retryCount == 0, request.response?.statusCode == 401 else {
            return completion(.doNotRetry)
        }
        Task {
            do {
                try await client.confirmSession()
                completion(.retry)
            } catch {
                completion(.doNotRetryWithError(error))
            }
        }
    }
}

/// The client's rules for servers, for Alamofire's own connections. It keeps the trust that it was made with:
/// pins that the client takes on later (`updatePins`, `fetchPins`) do not reach it, so make a new `Session`
/// with them.
struct CountersignEvaluator: ServerTrustEvaluating {
    private let pinning: PinningDelegate

    init(trust: Trust) { pinning = PinningDelegate(trust: trust) }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
        guard let verdict = pinning.judge(trust, for: host) else {
            throw TransportError(.hostNotFound, fate: .notSent)
        }
        guard verdict.isAccepted else { throw verdict }
    }
}
