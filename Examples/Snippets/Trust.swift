// Whom to take for a server.
import CountersignTrust

/// Pins of public keys, with the backups that are used once a key is lost; others by the machine's own rule.
func usualTrust() throws -> Trust {
    try Trust(
        [
            .host(
                "**.example.com", pins: ["sha256/MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="],
                backups: ["sha256/ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="]),
            .host("status.example.net", .system),
        ], others: .refused)
}

/// Tried out first: what is not met is reported, and nothing gets weaker.
func triedOut(_ pins: PinSet) throws -> Trust.Rule {
    Trust.Rule(try Trust.HostPattern("*.example.org"), .pins(pins), mode: .reportOnly)
}

/// A server whose certificate signs itself, and is in the app.
func ownCertificate(folder: String, pem: [UInt8]) throws -> [Trust.Rule] {
    [
        try .host("intra.example.com", .certificates(Trust.Certificate.all(inFolder: folder))),
        try .host("lab.example.com", .certificates(Trust.Certificate.all(inPEM: pem)), mode: .enforce),
    ]
}

/// A demand of one's own besides the others.
func demanding(_ pins: [String], _ backups: [String]) throws -> Trust.Policy {
    let short = Trust.Policy.custom("short chains") { evidence in
        evidence.served.count <= 3
            ? .accept : .refuse("\(evidence.host) served \(evidence.served.count) certificates")
    }
    return try .all([.pins(pins, backups: backups), short])
}

/// Each check that is left out is left out by name.
func testBench() throws -> Trust {
    Trust(
        [
            try .host("old.example.com", Trust.Policy.system.withoutCheckingTheHostName()),
            try .host("clockless.example.com", Trust.Policy.system.withoutCheckingTheChain()),
            try .host("bench.example.com", .acceptsAnyServerAndSoAnyAttacker),
        ], others: .system)
}

/// Which rules count for a host, and what is in them.
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

/// A pin, from a certificate or from a key.
func pins(of certificate: Trust.Certificate, key: [UInt8]) throws -> PinSet {
    let spare = Trust.Pin(subjectPublicKeyInfo: key)
    let set = try PinSet([certificate.pin], backups: [spare])
    print(set.pins, set.backups, set.all.map(\.digest))
    return try PinSet(
        [Trust.Pin("sha256/MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")], backups: set.backups)
}

/// What a mistake in a rule looks like: one sentence for who wrote it.
func complaint() -> String? {
    do throws(TrustError) {
        _ = try Trust.HostPattern("*.*.example.com")
        return nil
    } catch {
        return error.description
    }
}
