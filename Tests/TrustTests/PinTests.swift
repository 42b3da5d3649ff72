import CountersignTestServer
import CountersignTrust
import Testing

/// Pins, and sets of them.
struct PinTests {
    private let text = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private let other = "sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="

    @Test(arguments: [
        "", "sha256/", "sha256/AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",
        "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
    ])
    func whatIsNoPin(_ text: String) {
        #expect(throws: TrustError.self) { try Trust.Pin(text) }
    }

    @Test func aSetNeedsABackup() throws {
        let (pin, backup) = (try Trust.Pin(text), try Trust.Pin(other))
        #expect(pin.description == text)
        #expect(throws: TrustError.self) { try PinSet([pin], backups: []) }
        #expect(throws: TrustError.self) { try PinSet([], backups: [backup]) }
        #expect(throws: TrustError.self) { try PinSet([pin], backups: [pin]) }
        #expect(throws: TrustError.self) { try Trust.Policy.pins([text], backups: []) }
        #expect(throws: TrustError.self) { try Trust.Policy.certificates([]) }
        #expect(throws: TrustError.self) { try Trust.Policy.all([]) }
        #expect(try PinSet([pin], backups: [backup]).all == [pin, backup])
    }

    @Test func aRenewalThatKeepsTheKeyKeepsThePin() throws {
        let first = try IssuedCertificate.selfSigned(
            CertificateRequest("A", hosts: ["a.example"], at: 2_000_000_000))
        var renewal = CertificateRequest("B", hosts: ["b.example"], at: 2_100_000_000)
        renewal.key = .of(first)
        let second = try IssuedCertificate.selfSigned(renewal)
        #expect(first.certificate != second.certificate)
        #expect(first.certificate.pin == second.certificate.pin)
    }
}
