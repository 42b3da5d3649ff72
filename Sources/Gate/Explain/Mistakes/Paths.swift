import CountersignWire

extension Mistake {
    /// What is signed of the path is what is sent, byte for byte.
    static let paths = [
        Mistake(
            "path-without-slash", "the path was signed without the slash that it was sent with at its end",
            mend: "sign the path that is sent; some HTTP libraries add a slash",
            .request { draft in
                draft.withPath { $0.count > 1 && $0.last == .slash ? [Array($0.dropLast())] : [] }
            }),
        Mistake(
            "path-with-slash", "the path was signed with a slash at its end that was not sent",
            mend: "sign the path that is sent; some HTTP libraries remove a slash",
            .request { draft in
                draft.withPath { $0.last == .slash ? [] : [$0 + [.slash]] }
            }),
        Mistake(
            "path-decoded", "the decoded path was signed, not the one that was sent",
            mend: "sign the path as it stands in the request line, percent-escapes and all",
            .request { draft in
                draft.withPath { [Escapes.decode($0)] }
            }),
        Mistake(
            "path-re-encoded", "the path was signed in another percent-encoding than it was sent in",
            mend: "encode the path once, and sign and send the same bytes",
            .request { draft in
                draft.withPath { path in
                    func each(_ change: ([UInt8]) -> [UInt8]) -> [UInt8] {
                        Array(path.split(at: .slash).map(change).joined(separator: [.slash]))
                    }
                    return [each { Escapes.strict(Escapes.decode($0)) }, each(Escapes.strict)]
                        + [each { Escapes.component(Escapes.decode($0)) }]
                }
            }),
        Mistake(
            "path-normalised", "the path was signed after its dots or double slashes had been resolved",
            mend: "sign the path as it is sent, or resolve it before both",
            .request { draft in
                draft.withPath { [normalised($0, keepingEmpty: false), normalised($0, keepingEmpty: true)] }
            }),
        Mistake(
            "path-prefix", "the path was signed without its first segment, which a base URL or a proxy added",
            mend: "sign the whole path that reaches the gateway",
            .request { draft in
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
