import CountersignTestServer
import CountersignTrust
import Foundation
import Testing

/// Certificates from files, and bytes that are none.
struct CertificateFileTests {
    private func folder(_ files: [String: [UInt8]]) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, bytes) in files { try Data(bytes).write(to: folder.appending(path: name)) }
        return folder.path()
    }

    private func issued(_ name: String) throws -> IssuedCertificate {
        try IssuedCertificate.selfSigned(CertificateRequest(name, hosts: [name], at: 2_000_000_000))
    }

    @Test func aFolderOfBothKinds() throws {
        let (a, b, c) = (try issued("a.example"), try issued("b.example"), try issued("c.example"))
        let both = try b.pem().certificate + Array("between\r\n".utf8) + c.pem().certificate
        let path = try folder(["1.cer": a.certificate.der, "2.pem": both, "README": Array("no".utf8)])
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(try Trust.Certificate.all(inFolder: path) == [a.certificate, b.certificate, c.certificate])
        #expect(a.certificate.names == [.dns("a.example")] && a.certificate.isSelfIssued)
    }

    @Test func whatIsNotWhatItIsCalledStopsAll() throws {
        let good = try issued("a.example")
        for (name, bytes) in [
            ("x.cer", try good.pem().certificate), ("x.cer", good.certificate.der + [0]),
            ("x.cer", good.certificate.der.dropLast()),
            ("x.pem", good.certificate.der), ("x.pem", Array("-----BEGIN CERTIFICATE-----\nAAAA\n".utf8)),
            ("x.pem", Array("-----BEGIN CERTIFICATE-----\nAA*A\n-----END CERTIFICATE-----\n".utf8)),
            ("x.pem", []),
        ] as [(String, [UInt8])] {
            let path = try folder(["a.cer": good.certificate.der, name: bytes])
            defer { try? FileManager.default.removeItem(atPath: path) }
            #expect(throws: TrustError.self, "\(name) \(bytes.count)") {
                try Trust.Certificate.all(inFolder: path)
            }
        }
        let empty = try folder([:])
        defer { try? FileManager.default.removeItem(atPath: empty) }
        #expect(throws: TrustError.self) { try Trust.Certificate.all(inFolder: empty) }
        #expect(throws: TrustError.self) { try Trust.Certificate.all(inFolder: empty + "/none") }
    }

    @Test func aCertificateThatIsChangedAnywhereTrapsNobody() throws {
        let der = try issued("a.example").certificate.der
        var read = 0
        for index in der.indices {
            for byte in [0, 0x7F, 0x80, 0x84, 0xFF, der[index] ^ 1] as [UInt8] {
                var changed = der
                changed[index] = byte
                if let certificate = try? Trust.Certificate(der: changed) {
                    read += 1
                    #expect(certificate.der == changed)
                }
            }
            #expect(throws: TrustError.self) { try Trust.Certificate(der: Array(der[..<index])) }
        }
        // Most bytes are a key's, a name's or a signature's: whether those hold is for the chain to say.
        #expect(read > 0 && read < der.count * 6)
    }
}
