import CCrypto
import CountersignTestServer
import Glibc

@testable import CountersignLab

/// A server that answers each request with `METHOD TARGET: BODY`, until the client closes.
func echo(_ security: TestServer.Security = .plain) throws -> TestServer {
    try TestServer(security) { connection in
        while let head = connection.readHead() {
            let lines = head.split(separator: "\r\n")
            let length = lines.first { $0.lowercased().hasPrefix("content-length:") }?.split(separator: " ")
                .last
            let body = connection.readBody(length.flatMap { Int($0) } ?? 0)
            let words = lines[0].split(separator: " ")
            connection.answer(
                "200 OK", body: "\(words[0]) \(words[1]): \(String(decoding: body, as: UTF8.self))")
        }
    }
}

/// An authority and the certificates that it issues.
struct Authority {
    let root: IssuedCertificate

    init(_ name: String) throws {
        var request = CertificateRequest(name, at: Int64(time(nil)))
        request.role = .authority
        root = try IssuedCertificate.selfSigned(request)
    }

    func server(_ host: String) throws -> TestServer.Security {
        .tls(
            TestServer.Credentials([
                try root.issue(CertificateRequest(host, hosts: [host], at: Int64(time(nil))))
            ]))
    }
}

/// A victim that sends a request over the network's public port, and checks no certificate.
func victim(of network: Network, _ request: RawRequest) async throws -> RawResponse {
    let security: RawClient.Security =
        switch network.security {
        case .plain: .none
        case .tls(_, let host): try .unchecked(host)
        }
    return try await RawClient(port: network.publicPort, security: security).send(request)
}

/// A victim that trusts no authority, and sends the TLS alert.
func distrustful(_ port: UInt16) throws -> RawClient {
    let side = try TLSEndpoint.client()
    SSL_CTX_set_verify(side.pointer, SSL_VERIFY_PEER, nil)
    return RawClient(port: port, security: .unchecked(name: "bank.test", side))
}
