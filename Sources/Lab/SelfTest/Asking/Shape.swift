import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignWire

/// What kinds of call there are. Each draft bears eight random bytes, so that no two are equal: schemes without a nonce go by the whole
/// request.
enum Shape: Sendable {
    /// GET; on the authority's own route there is only POST.
    case bare
    case withBody
}

extension Subject {
    func draft(_ shape: Shape) -> Draft {
        let mark = Hex.encode(SystemRandom().bytes(8).span)
        switch place {
        case .ownRoute:
            var draft = draft("POST", Array("\(prefix)/token".utf8), mark)
            // Well formed, and nobody's.
            draft.body = Array("{\"login_token\":\"l_\(String(repeating: "A", count: 43))\"}".utf8)
            draft.set("Content-Type", "application/json")
            return draft
        case .backend(let target):
            switch (shape, scheme) {
            case (.bare, _): return draft("GET", target, mark)
            case (.withBody, .formMD5):
                var draft = Draft(method: "POST", target: target, authority: origin.authority, transport: transport)
                draft.body = Array("selftest=\(mark)".utf8)
                draft.set("Content-Type", "application/x-www-form-urlencoded")
                return draft
            case (.withBody, _):
                var draft = draft("POST", target, mark)
                draft.body = Array("{\"selftest\":\"\(mark)\"}".utf8)
                draft.set("Content-Type", "application/json")
                return draft
            }
        }
    }

    private func draft(_ method: String, _ target: [UInt8], _ mark: String) -> Draft {
        let joint = target.contains(UInt8(ascii: "?")) ? "&" : "?"
        return Draft(
            method: method, target: target + Array("\(joint)selftest=\(mark)".utf8), authority: origin.authority,
            transport: transport)
    }
}
