import CountersignHTTP
import CountersignWire

/// Two settings of which each is valid, and which cannot work together.
struct SettingContradiction: Sendable, Equatable {
    /// The setting that is refused, and the one because of which it is.
    let name: String
    let other: String
    /// One sentence: the setting, its value and what was expected.
    let message: String
}

extension Configuration {
    /// All contradictions, for a server with that many event loops.
    func contradictions(workers: Int) -> [SettingContradiction] {
        var found: [SettingContradiction] = []
        if let decide, trustedProxies.isEmpty {
            found.append(
                SettingContradiction(
                    name: "decide", other: "trusted-proxies",
                    message:
                        "--decide \(decide.rawValue): expected --trusted-proxies with the proxies that ask"
                ))
        }
        if adminTLS == .on, tls == .off {
            found.append(
                SettingContradiction(
                    name: "admin-tls", other: "tls",
                    message: "--admin-tls on: expected --tls auto or files, whose certificate it uses"))
        }
        let limit = upstreamSettings.limits.connections
        if limit < workers {
            found.append(
                SettingContradiction(
                    name: "limit-upstream-connections", other: "workers",
                    message: "--limit-upstream-connections: \(limit): "
                        + "expected at least one for each of \(workers) workers"))
        }
        if tracing.fieldFile != nil, tracing.collector == nil {
            found.append(
                SettingContradiction(
                    name: "trace-export-fields", other: "trace-export",
                    message: "--trace-export-fields: expected --trace-export with the collector's URL"))
        }
        guard upstream?.isTLS != true else { return found }
        for (name, isSet) in [
            ("upstream-ca", upstreamSettings.authorities != nil),
            ("upstream-certificate", upstreamSettings.identity != nil),
        ] where isSet {
            found.append(
                SettingContradiction(
                    name: name, other: "upstream",
                    message: "--\(name): expected an https:// URL in --upstream"))
        }
        return found
    }

    /// Throws a usage error for the first contradiction.
    func checkContradictions(workers: Int) throws(OperationalError) {
        if let first = contradictions(workers: workers).first {
            throw OperationalError(.usage, message: first.message)
        }
    }
}
