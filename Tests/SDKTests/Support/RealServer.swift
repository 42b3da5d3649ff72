import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignTestServer
import CountersignTrust

@testable import Countersign

/// A release key that no server here looks at.
func someRelease() throws -> ReleaseKey {
    try ReleaseKey(id: "r_1", secret: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
}

extension TestServer {
    /// A client over the transport that apps get, to this server in the clear.
    func client(_ folder: TestFolder, _ change: (inout CountersignOptions) -> Void = { _ in }) throws
        -> CountersignClient
    {
        var options = CountersignOptions()
        options.encryption = .noneSoThatAnybodyReadsAndChangesEverything
        change(&options)
        return try CountersignClient(
            release: someRelease(), baseURL: "http://127.0.0.1:\(port)", vault: .folder(folder.path),
            trust: .system,
            options: options)
    }
}

extension APIRequest {
    /// The request in the app's own name, for backends without accounts.
    func byTheApp() -> APIRequest {
        var request = self
        request.caller = .app
        return request
    }
}

/// An authority that the machine trusts, a server certificate issued by it, and the pin of an unknown key.
struct Certificates: Sendable {
    let time: Int64 = 2_000_000_000
    let root: IssuedCertificate
    let leaf: IssuedCertificate

    static let strange = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    init() throws {
        var request = CertificateRequest("Root", at: time)
        request.role = .authority
        root = try IssuedCertificate.selfSigned(request)
        leaf = try root.issue(CertificateRequest("Server", hosts: ["api.example.com"], at: time))
    }

    var pin: String { leaf.certificate.pin.description }

    /// A client of `api.example.com`, which is here.
    func client(
        _ server: TestServer, _ folder: TestFolder, _ trust: Trust,
        _ change: (inout CountersignOptions) -> Void = { _ in }
    ) throws -> CountersignClient {
        var transport = TransportOptions()
        transport.authorities = .instead([root.certificate])
        transport.addresses[try Trust.Host("api.example.com")] = try Trust.Host("127.0.0.1")
        transport.clock.wall = { time }
        var options = CountersignOptions()
        options.transport = .standard(transport)
        options.clock.wall = { time }
        options.missingAuthorityKey = .leavesRefusalsUnverified
        change(&options)
        return try CountersignClient(
            release: someRelease(), baseURL: "https://api.example.com:\(server.port)",
            vault: .folder(folder.path),
            trust: trust, options: options)
    }
}
