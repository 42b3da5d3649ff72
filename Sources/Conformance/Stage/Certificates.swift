import CountersignLab
import CountersignTestKit
import Glibc

/// The certificates that the front shows. Each signs itself.
struct Certificates: Sendable {
    /// What clients call the front.
    static let host = "localhost"

    /// In use at first; its pin is given to the port.
    let current: Issued
    /// Its pin is given to the port as the backup.
    let backup: Issued
    /// Of a key that the port was not given.
    let stranger: Issued
    /// Named by pin manifests alone.
    let successor: Issued
    /// Named by pin manifests alone, as the backup.
    let successorBackup: Issued
    /// Of the current key, for another host.
    let otherHost: Issued
    /// Of the current key, and past its last day.
    let expired: Issued

    init() throws(StageFault) {
        do {
            let now = Int64(time(nil))
            let host = Certificates.host
            current = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            backup = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            stranger = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            successor = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            successorBackup = try .selfSigned(CertificateRequest(host, hosts: [host], at: now))
            var request = CertificateRequest("other.test", hosts: ["other.test"], at: now)
            request.key = .of(current)
            otherHost = try .selfSigned(request)
            request = CertificateRequest(host, hosts: [host], at: now - 60 * 86_400)
            request.key = .of(current)
            expired = try .selfSigned(request)
        } catch {
            throw StageFault("certificates: \(error)")
        }
    }
}
