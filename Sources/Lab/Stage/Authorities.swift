import CountersignTestKit
import CountersignTransport
import CountersignTrust
import Glibc

/// Who vouches for whom. The device trusts two: the one that vouches for the bank, and the attacker's, which somebody had installed.
package struct Authorities: Sendable {
    package let bank: Issued
    package let attacker: Issued
    /// The bank's own certificate.
    package let server: Issued
    /// A key in a safe, which apps pin as their backup.
    let spare: Issued

    /// New keys; `serverKey` is the kind that the bank's server is to have.
    package init(serverKey: CertificateRequest.Key = .p256) throws(StageFault) {
        do {
            let now = Int64(time(nil))
            bank = try .selfSigned(Authorities.authority("Trustworthy Authority", now))
            attacker = try .selfSigned(Authorities.authority("Helpful Inspection Proxy", now))
            var request = CertificateRequest(Setting.host, hosts: [Setting.host], at: now)
            request.key = serverKey
            server = try bank.issue(request)
            spare = try bank.issue(CertificateRequest(Setting.host, hosts: [Setting.host], at: now))
        } catch {
            throw StageFault("certificates: \(error)")
        }
    }

    private static func authority(_ name: String, _ now: Int64) -> CertificateRequest {
        var request = CertificateRequest(name, at: now)
        request.role = .authority
        return request
    }

    /// Whom an app takes for the bank.
    func trust(_ app: RowProfile.AppTrust) throws(TrustProblem) -> Trust {
        let pins = try Trust.Policy.pins(
            PinSet([server.certificate.pin], backups: [spare.certificate.pin]))
        switch app {
        case .anyAuthorityOfTheDevice: return .system
        case .pinned: return Trust([try .host(Setting.host, pins)], others: .refused)
        case .pinnedWithoutHostCheck:
            let everywhere = try Trust.Rule.host("**.test", pins.withoutCheckingTheHostName())
            return Trust([everywhere], others: .refused)
        }
    }

    /// The device's: names lead to loopback, and both authorities are believed.
    func transport() -> TransportOptions {
        var options = TransportOptions()
        options.authorities = .instead([bank.certificate, attacker.certificate])
        options.connectTimeout = .within(.seconds(5))
        options.idleTimeout = .within(.seconds(10))
        options.totalTimeout = .within(.seconds(15))
        return options
    }
}
