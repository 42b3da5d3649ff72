// Why a server was refused, and how to judge one in another TLS stack.
import CountersignTrust

/// Enough to tell a lost key from an attack.
func explain(_ verdict: Trust.Verdict) -> String {
    guard !verdict.isAccepted else {
        return verdict.decision == .reported ? "accepted, and reported" : "accepted"
    }
    let expected = verdict.expected.map(\.description), served = verdict.served.map(\.description)
    return "\(verdict.host): expected \(expected), served \(served); "
        + verdict.reasons.map(sentence).joined(separator: "; ")
}

func sentence(_ reason: Trust.Verdict.Reason) -> String {
    switch reason {
    case .hostNotNamed: "no rule names the host"
    case .chain(let problem): sentence(problem)
    case .wrongHost(let names): "the certificate is for \(names)"
    case .pinNotMet: "another key"
    case .certificateNotPinned(let problem): "another certificate: \(sentence(problem))"
    case .serverCertificateNotPinned:
        "another certificate; the chain is not checked, so only the server's own counts"
    case .serverKeyNotPinned: "another key; the chain is not checked, so only the server's own counts"
    case .custom(let name, let reason): "\(name): \(reason)"
    case .customNotReached(let name, let problem): "\(name) was not called: \(sentence(problem))"
    case .revoked: "revoked, as the server itself proves"
    case .badStaple(let detail): "a proof of good standing that is none: \(detail)"
    }
}

func sentence(_ problem: Trust.PathError) -> String {
    switch problem {
    case .noCertificate: "no certificate"
    case .expired: "expired: or the device's clock is wrong"
    case .notYetValid: "not valid yet: or the device's clock is wrong"
    case .noPathToAuthority: "no authority that is known"
    case .selfSigned: "signs itself, and is not pinned"
    case .tooWeak: "a key that is too weak"
    case .revoked: "revoked"
    case .notForServers: "not for servers"
    case .badSignature: "a signature that does not hold"
    case .other(let detail): detail
    }
}

/// A decision and its name in a log.
func name(_ decision: Trust.Verdict.Decision) -> String {
    switch decision {
    case .accepted: "accepted"
    case .reported: "reported"
    case .refused: "refused"
    }
}

/// Judges the certificates that another TLS library received.
func judge(_ chain: [[UInt8]], for name: String, at time: Int64, by trust: Trust, _ library: OwnLibrary)
    throws
    -> Trust.Verdict
{
    let served = try chain.map { der in try Trust.Certificate(der: der) }
    for certificate in served {
        print(certificate.isSelfIssued, certificate.der.count, certificate.isFor(try Trust.Host(name)))
        for case .dns(let name) in certificate.names { print(name) }
        for case .address(let bytes) in certificate.names { print(bytes) }
    }
    return trust.judge(Trust.Evidence(host: try Trust.Host(name), served: served, time: time, paths: library))
}

/// Validates certificate paths by that library.
struct OwnLibrary: Trust.PathValidation {
    let validate: @Sendable ([Trust.Certificate], [Trust.Certificate]?, Int64) -> [Trust.Certificate]?

    func path(
        for served: [Trust.Certificate], to anchors: Trust.Anchors, at time: Int64
    ) throws(Trust.PathError) -> [Trust.Certificate] {
        let path: [Trust.Certificate]? =
            switch anchors {
            case .system: validate(served, nil, time)
            case .only(let some): validate(served, some, time)
            }
        guard let path else { throw .noPathToAuthority }
        return path
    }
}

/// A policy that uses the whole path and the time.
let longLived = Trust.Policy.custom("no root that is older than the app") { evidence in
    guard evidence.time > 1_700_000_000, let path = try? evidence.path(to: Trust.Anchors.system) else {
        return .accept
    }
    return path.count > 1
        ? Trust.Policy.Opinion.accept : Trust.Policy.Opinion.refuse("a server that is its own authority")
}

/// The names in a certificate.
func dnsNames(_ names: [Trust.Certificate.Name]) -> [String] { names.map(\.description) }
