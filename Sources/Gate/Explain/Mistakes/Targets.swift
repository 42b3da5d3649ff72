import CountersignSchemes
import CountersignWire

extension Mistake {
    /// The method and where the request goes.
    static let hosts = [
        Mistake(
            code: "method-case", sentence: "the method was signed in lower case",
            remedy: "methods have case: sign GET and POST as they are sent",
            correction: .request { draft in
                [draft.with(\.method, setTo: draft.method.lowercased())]
            }),
        Mistake(
            code: "other-method", sentence: "the request was signed for another method than it was sent with",
            remedy:
                "sign the method that is sent; look for redirects, which turn POST into GET, and for "
                + "method overrides",
            correction: .request { draft in
                ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"].filter { $0 != draft.method }.map {
                    draft.with(\.method, setTo: $0)
                }
            }),
        Mistake(
            code: "host-without-port", sentence: "the host was signed without its port",
            remedy: "sign the host as the Host field has it, with a port that is not the default one",
            correction: .request { draft in
                draft.withAuthority { host in host.lastIndex(of: ":").map { [String(host[..<$0])] } ?? [] }
            }),
        Mistake(
            code: "host-with-port", sentence: "the host was signed with a port that was not sent",
            remedy: "sign the host as the Host field has it: without the default port",
            correction: .request { draft in
                draft.withAuthority { host in
                    host.contains(":") ? [] : [":443", ":80", ":8443", ":8080"].map { host + $0 }
                }
            }),
        Mistake(
            code: "host-with-port", sentence: "the host was signed with the default port",
            remedy: "leave the default port out (RFC 9421 §2.2.3)", schemes: [.messageSignatures],
            correction: .text { input in
                let host = input.draft.authority.lowercased()
                return [":443", ":80"].map {
                    input.text.replacing([UInt8]("\(host)\n"), with: [UInt8]("\(host)\($0)\n"))
                }
            }),
        Mistake(
            code: "host-case", sentence: "the host was signed in the case in which it is written",
            remedy: "the host is signed in lower case (RFC 9421 §2.2.3)", schemes: [.messageSignatures],
            correction: .text { input in
                let host = input.draft.authority
                return [input.text.replacing([UInt8](host.lowercased()), with: [UInt8](host))]
            }),
        Mistake(
            code: "host-case", sentence: "the host was signed in another case than it was sent in",
            remedy: "sign the host as it is sent",
            correction: .request { draft in draft.withAuthority { [$0.lowercased()] } }),
        Mistake(
            code: "other-host", sentence: "the request was signed for another host",
            remedy:
                "sign the host that reaches the gateway; a proxy in front must pass on Host, or the "
                + "policy's public-url name it",
            correction: .request { draft in
                draft.withAuthority { host in
                    let name = String(host.prefix { $0 != ":" })
                    let port = host.dropFirst(name.count)
                    var others = ["x-forwarded-host", "x-original-host", "x-host"].compactMap {
                        draft.value(of: $0)?.text
                    }
                    others += ["localhost", "127.0.0.1"].flatMap { ["\($0)\(port)", $0] }
                    others.append(host.hasPrefix("www.") ? String(host.dropFirst(4)) : "www.\(host)")
                    return others
                }
            }),
        Mistake(
            code: "other-transport", sentence: "https was signed where http was received, or the reverse",
            remedy:
                "a proxy that ends TLS changes what the gateway sees: let TLS reach it, or set the "
                + "policy's public-url",
            correction: .request { draft in
                [draft.with(\.transport, setTo: draft.transport == .tls ? .plain : .tls)]
            }),
    ]
}

extension Mistake {
    /// What is signed of the path is what is sent, byte for byte.
    static let paths = [
        Mistake(
            code: "path-without-slash",
            sentence: "the path was signed without the slash that it was sent with at its end",
            remedy: "sign the path that is sent; some HTTP libraries add a slash",
            correction: .request { draft in
                draft.withPath { $0.count > 1 && $0.last == .slash ? [Array($0.dropLast())] : [] }
            }),
        Mistake(
            code: "path-with-slash",
            sentence: "the path was signed with a slash at its end that was not sent",
            remedy: "sign the path that is sent; some HTTP libraries remove a slash",
            correction: .request { draft in
                draft.withPath { $0.last == .slash ? [] : [$0 + [.slash]] }
            }),
        Mistake(
            code: "path-decoded", sentence: "the decoded path was signed, not the one that was sent",
            remedy: "sign the path as it stands in the request line, percent-escapes and all",
            correction: .request { draft in
                draft.withPath { [PercentEncodingVariants.decode($0)] }
            }),
        Mistake(
            code: "path-re-encoded",
            sentence: "the path was signed in another percent-encoding than it was sent in",
            remedy: "encode the path once, and sign and send the same bytes",
            correction: .request { draft in
                draft.withPath { path in
                    func each(_ change: ([UInt8]) -> [UInt8]) -> [UInt8] {
                        Array(path.split(at: .slash).map(change).joined(separator: [.slash]))
                    }
                    return [
                        each { PercentEncodingVariants.strict(PercentEncodingVariants.decode($0)) },
                        each(PercentEncodingVariants.strict),
                    ]
                        + [each { PercentEncodingVariants.component(PercentEncodingVariants.decode($0)) }]
                }
            }),
        Mistake(
            code: "path-normalised",
            sentence: "the path was signed after its dots or double slashes had been resolved",
            remedy: "sign the path as it is sent, or resolve it before both",
            correction: .request { draft in
                draft.withPath { [normalised($0, keepingEmpty: false), normalised($0, keepingEmpty: true)] }
            }),
        Mistake(
            code: "path-prefix",
            sentence: "the path was signed without its first segment, which a base URL or a proxy added",
            remedy: "sign the whole path that reaches the gateway",
            correction: .request { draft in
                draft.withPath { path in
                    let rest = path.dropFirst()
                    return rest.firstIndex(of: .slash).map { [Array(rest[$0...])] } ?? []
                }
            }),
    ]

    /// Source: RFC 3986 §5.2.4.
    private static func normalised(_ path: [UInt8], keepingEmpty isKept: Bool) -> [UInt8] {
        let segments = path.split(at: .slash)
        var kept: [[UInt8]] = []
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment.text {
            case "." where isLast: kept.append([])
            case ".": continue
            case "..":
                if kept.count > 1 { kept.removeLast() }
                if isLast { kept.append([]) }
            case "" where index > 0 && !isLast && !isKept: continue
            default: kept.append(segment)
            }
        }
        return Array(kept.joined(separator: [.slash]))
    }
}
