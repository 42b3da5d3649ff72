// Which servers to accept.
import CountersignTrust

/// Pins public keys, with backups for the case that a key is lost; another host by the system's authorities.
func usualTrust() throws -> Trust {
    try Trust(
        [
            .host(
                "**.example.com", pins: ["sha256/MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="],
                backups: ["sha256/ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="]),
            .host("status.example.net", .system),
        ], others: .refused)
}

/// Tests new pins: reports servers that do not match, and weakens no check.
func triedOut(_ pins: PinSet) throws -> Trust.Rule {
    Trust.Rule(try Trust.HostPattern("*.example.org"), .pins(pins), mode: .reportOnly)
}

/// Accepts a self-signed certificate that is part of the app.
func ownCertificate(folder: String, pem: [UInt8]) throws -> [Trust.Rule] {
    [
        try .host("intra.example.com", .certificates(Trust.Certificate.all(inFolder: folder))),
        try .host("lab.example.com", .certificates(Trust.Certificate.all(inPEM: pem)), mode: .enforce),
    ]
}

/// Adds a custom requirement.
func demanding(_ pins: [String], _ backups: [String]) throws -> Trust.Policy {
    let short = Trust.Policy.custom("short chains") { evidence in
        evidence.served.count <= 3
            ? .accept : .refuse("\(evidence.host) served \(evidence.served.count) certificates")
    }
    return try .all([.pins(pins, backups: backups), short])
}

/// Omits checks; each omission is named.
func testBench() throws -> Trust {
    Trust(
        [
            try .host("old.example.com", Trust.Policy.system.withoutCheckingTheHostName()),
            try .host("clockless.example.com", Trust.Policy.system.withoutCheckingTheChain()),
            try .host("bench.example.com", .acceptsAnyServerAndSoAnyAttacker),
        ], others: .system)
}

/// Prints the rules that apply to a host.
func describe(_ trust: Trust, _ name: String) throws {
    let host = try Trust.Host(name)
    print(host, host.isAddress ? "is an address" : "is a name", trust.rules.count, "rules in all")
    for rule in trust.rules(for: host) {
        print(rule.pattern, rule.pattern.matches(host), rule.mode == Trust.Rule.Mode.enforce, rule.policy)
    }
    if trust.rules(for: host).isEmpty {
        print(trust.others == Trust.Others.refused ? "refused" : "as the machine has it")
    }
    print(Trust.system.others == .system)
}

/// Makes pins from a certificate and from a key.
func pins(of certificate: Trust.Certificate, key: [UInt8]) throws -> PinSet {
    let spare = Trust.Pin(subjectPublicKeyInfo: key)
    let set = try PinSet([certificate.pin], backups: [spare])
    print(set.pins, set.backups, set.all.map(\.digest))
    return try PinSet(
        [Trust.Pin("sha256/MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")], backups: set.backups)
}

/// The error for an invalid rule: one sentence for the developer.
func complaint() -> String? {
    do throws(TrustError) {
        _ = try Trust.HostPattern("*.*.example.com")
        return nil
    } catch {
        return error.description
    }
}
