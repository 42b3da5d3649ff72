import CountersignTestServer
import CountersignTransport
import CountersignTrust

/// A root authority, an intermediate authority and an unrelated second root; issued at a fixed time, so that
/// only the time argument counts.
struct Authorities: Sendable {
    let time: Int64 = 2_000_000_000
    let root: IssuedCertificate
    let middle: IssuedCertificate
    /// Another authority, which the machine trusts as well.
    let other: IssuedCertificate

    static let shared = Result { try Authorities() }

    private init() throws {
        var request = CertificateRequest("Root", at: time)
        request.role = .authority
        root = try IssuedCertificate.selfSigned(request)
        request.subject = "Other Root"
        other = try IssuedCertificate.selfSigned(request)
        request.subject = "Middle"
        middle = try root.issue(request)
    }

    /// A server's certificate, changed as wanted.
    func server(
        _ hosts: [String] = ["api.example.com"], by issuer: IssuedCertificate? = nil,
        _ change: (inout CertificateRequest) -> Void = { _ in }
    ) throws -> IssuedCertificate {
        var request = CertificateRequest("Server", hosts: hosts, at: time)
        change(&request)
        return try (issuer ?? middle).issue(request)
    }

    /// Options under which `api.example.com` and its like are here, and the machine trusts both authorities.
    var options: TransportOptions {
        get throws {
            var options = TransportOptions()
            options.authorities = .instead([root.certificate, other.certificate])
            for name in ["api.example.com", "www.example.com", "a.b.example.com", "elsewhere.test"] {
                options.addresses[try Trust.Host(name)] = try Trust.Host("127.0.0.1")
            }
            options.clock.wall = { [time] in time }
            return options
        }
    }
}

/// The pin of an unknown key.
let strangePin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

func pin(_ issued: IssuedCertificate) -> String { issued.certificate.pin.description }

extension TestServer {
    var plainOrigin: Origin {
        get throws { Origin(.plaintext, host: try Trust.Host("127.0.0.1"), port: port) }
    }

    func origin(_ host: String = "api.example.com") throws -> Origin {
        Origin(.tls, host: try Trust.Host(host), port: port)
    }
}

/// What a request came to.
func outcome(
    _ transport: HTTPTransport, _ request: OutgoingRequest
) async -> Result<Int, TransportError> {
    do throws(TransportError) {
        let response = try await transport.send(request)
        _ = try await response.body.collect(upTo: 1 << 20)
        return .success(response.status)
    } catch {
        return .failure(error)
    }
}
