import CountersignHTTP
import CountersignTestKit
import Glibc

/// TLS as an old server is set up: 1.2, and the key exchange by RSA, under which who records today and has the certificate's key tomorrow
/// reads everything. The certificate's key must be an RSA one.
package struct ReferenceTLS: Sendable {
    /// PEM: what leaks one day.
    package let key: String
    let context: TLSContext

    /// Writes the certificate and its key into `folder`, as servers have them.
    package init(_ server: Issued, folder: String) throws(StageFault) {
        do {
            let pem = try server.pem()
            key = String(decoding: pem.key, as: UTF8.self)
            let (certificate, key) = ("\(folder)/server.pem", "\(folder)/server.key")
            try Files.write(pem.certificate, to: certificate)
            try Files.write(pem.key, to: key)
            context = try TLSContext(preferringRSAKeyExchangeWithoutForwardSecrecy: certificate, key: key)
        } catch {
            throw StageFault("TLS as old servers have it: \(error)")
        }
    }
}
