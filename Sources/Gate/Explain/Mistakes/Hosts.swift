import CountersignSchemes
import CountersignWire

extension Mistake {
    /// The method and where the request goes.
    static let hosts = [
        Mistake(
            "method-case", "the method was signed in lower case",
            mend: "methods have case: sign GET and POST as they are sent",
            .request { draft in
                [draft.with(\.method, draft.method.lowercased())]
            }),
        Mistake(
            "other-method", "the request was signed for another method than it was sent with",
            mend:
                "sign the method that is sent; look for redirects, which turn POST into GET, and for method overrides",
            .request { draft in
                ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"].filter { $0 != draft.method }.map {
                    draft.with(\.method, $0)
                }
            }),
        Mistake(
            "host-without-port", "the host was signed without its port",
            mend: "sign the host as the Host field has it, with a port that is not the default one",
            .request { draft in
                draft.withAuthority { host in host.lastIndex(of: ":").map { [String(host[..<$0])] } ?? [] }
            }),
        Mistake(
            "host-with-port", "the host was signed with a port that was not sent",
            mend: "sign the host as the Host field has it: without the default port",
            .request { draft in
                draft.withAuthority { host in
                    host.contains(":") ? [] : [":443", ":80", ":8443", ":8080"].map { host + $0 }
                }
            }),
        Mistake(
            "host-with-port", "the host was signed with the default port",
            mend: "leave the default port out (RFC 9421 §2.2.3)", of: [.messageSignatures],
            .text { spelling in
                let host = spelling.draft.authority.lowercased()
                return [":443", ":80"].map {
                    spelling.text.replacing([UInt8]("\(host)\n"), with: [UInt8]("\(host)\($0)\n"))
                }
            }),
        Mistake(
            "host-case", "the host was signed in the case in which it is written",
            mend: "the host is signed in lower case (RFC 9421 §2.2.3)", of: [.messageSignatures],
            .text { spelling in
                let host = spelling.draft.authority
                return [spelling.text.replacing([UInt8](host.lowercased()), with: [UInt8](host))]
            }),
        Mistake(
            "host-case", "the host was signed in another case than it was sent in",
            mend: "sign the host as it is sent", .request { draft in draft.withAuthority { [$0.lowercased()] } }),
        Mistake(
            "other-host", "the request was signed for another host",
            mend:
                "sign the host that reaches the gateway; a proxy in front must pass on Host, or the policy's public-url name it",
            .request { draft in
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
            "other-transport", "https was signed where http was received, or the reverse",
            mend:
                "a proxy that ends TLS changes what the gateway sees: let TLS reach it, or set the policy's public-url",
            .request { draft in [draft.with(\.transport, draft.transport == .tls ? .plain : .tls)] }),
    ]
}
