import CountersignTestServer
import CountersignTransport
import CountersignTrust
import Glibc

/// The certificates of a stage. The device trusts two authorities: the bank's issuer and the attacker's,
/// which was installed on the device.
package struct StageCertificates: Sendable {
    package let bank: IssuedCertificate
    package let attacker: IssuedCertificate
    /// The bank's own certificate.
    package let server: IssuedCertificate
    /// The backup key, which apps pin as well.
    let spare: IssuedCertificate

    /// Creates new keys; `serverKey` is the key type of the bank's server.
    package init(serverKey: CertificateRequest.Key = .p256) throws(LabError) {
        do {
            let now = Int64(time(nil))
            bank = try .selfSigned(StageCertificates.authority(named: "Trustworthy Authority", at: now))
            attacker = try .selfSigned(
                StageCertificates.authority(named: "Helpful Inspection Proxy", at: now))
            var request = CertificateRequest(BankApp.host, hosts: [BankApp.host], at: now)
            request.key = serverKey
            server = try bank.issue(request)
            spare = try bank.issue(CertificateRequest(BankApp.host, hosts: [BankApp.host], at: now))
        } catch {
            throw LabError("certificates: \(error)")
        }
    }

    private static func authority(named name: String, at now: Int64) -> CertificateRequest {
        var request = CertificateRequest(name, at: now)
        request.role = .authority
        return request
    }

    /// The trust of an app in the bank's server.
    func trust(_ app: RowProfile.AppTrust) throws(TrustError) -> Trust {
        let pins = try Trust.Policy.pins(
            PinSet([server.certificate.pin], backups: [spare.certificate.pin]))
        switch app {
        case .anyAuthorityOfTheDevice: return .system
        case .pinned: return Trust([try .host(BankApp.host, pins)], others: .refused)
        case .pinnedWithoutHostCheck:
            let everywhere = try Trust.Rule.host("**.test", pins.withoutCheckingTheHostName())
            return Trust([everywhere], others: .refused)
        }
    }

    /// The device's transport options: names resolve to loopback, and both authorities are trusted.
    func transport() -> TransportOptions {
        var options = TransportOptions()
        options.authorities = .instead([bank.certificate, attacker.certificate])
        options.connectTimeout = .within(.seconds(5))
        options.idleTimeout = .within(.seconds(10))
        options.totalTimeout = .within(.seconds(15))
        return options
    }
}
