import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A usual way of signing something else than was sent. Each is tried: the one under which the signature holds is the
/// cause, and a forged request has none.
struct Mistake: Sendable {
    let sentence: String
    /// The request as the signer saw it.
    let undo: @Sendable (inout Draft) -> Void

    static func explaining(_ claim: Claim, of request: Request, _ scheme: any Scheme, _ secret: Secret) -> String? {
        for (sentence, other) in spellings(of: secret) {
            if holds(claim, request, scheme, SigningKey(other)) { return sentence }
        }
        let key = SigningKey(secret)
        for mistake in all {
            var draft = Draft(request)
            mistake.undo(&draft)
            if holds(claim, draft.request(), scheme, key) { return mistake.sentence }
        }
        return nil
    }

    private static let all = [
        Mistake(sentence: "the path was signed without its trailing slash") {
            $0.editPath { if $0.last == slash { $0.removeLast() } }
        },
        Mistake(sentence: "the path was signed with a trailing slash") {
            $0.editPath { if $0.last != slash { $0.append(slash) } }
        },
        Mistake(sentence: "the decoded path was signed, not the one that was sent") {
            $0.editPath { $0 = decoded($0) }
        },
        Mistake(sentence: "the query was signed with %20 where + was sent") {
            $0.editQuery { replace("+", "%20", in: &$0) }
        },
        Mistake(sentence: "the query was signed with + where %20 was sent") {
            $0.editQuery { replace("%20", "+", in: &$0) }
        },
        Mistake(sentence: "the method was signed in lower case") { $0.method = $0.method.lowercased() },
        Mistake(sentence: "the host was signed without its port") {
            if let colon = $0.authority.lastIndex(of: ":") { $0.authority = String($0.authority[..<colon]) }
        },
    ]

    private static let slash = UInt8(ascii: "/")

    private static func holds(_ claim: Claim, _ request: Request, _ scheme: any Scheme, _ key: SigningKey) -> Bool {
        var workspace = Workspace()
        do throws(Refusal) {
            guard let again = try scheme.claim(in: request, &workspace) else { return false }
            try scheme.spell(again, request, &workspace)
        } catch {
            return false
        }
        return Verify.compare(claim, key, workspace) == .equal
    }

    /// The same secret under another reading.
    private static func spellings(of secret: Secret) -> [(String, Secret)] {
        secret.withExposedBytes { bytes in
            var found: [(String, Secret)] = []
            let encoded = Array(Base64.encode(bytes, .url).utf8)
            found.append(("the secret was used as its base64url text, not decoded", Secret(copying: encoded.span)))
            if let raw = Base64.decode(bytes, .url), !raw.isEmpty {
                found.append(("the secret was decoded from base64url, not used as text", Secret(copying: raw.span)))
            }
            let digits = Array(Hex.encode(bytes).utf8)
            found.append(("the secret was used as its hexadecimal text, not decoded", Secret(copying: digits.span)))
            return found
        }
    }

    private static func decoded(_ text: [UInt8]) -> [UInt8] {
        var plain: [UInt8] = []
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%"), let byte = Percent.byte(in: text.span, at: index + 1) {
                plain.append(byte)
                index += 3
            } else {
                plain.append(text[index])
                index += 1
            }
        }
        return plain
    }

    private static func replace(_ old: String, _ new: String, in text: inout [UInt8]) {
        let old = Array(old.utf8)
        var result: [UInt8] = []
        var index = 0
        while index < text.count {
            if text[index...].starts(with: old) {
                result += Array(new.utf8)
                index += old.count
            } else {
                result.append(text[index])
                index += 1
            }
        }
        text = result
    }
}

extension Draft {
    /// A request that was received, as a draft that can be changed.
    fileprivate init(_ request: Request) {
        self.init(
            method: request.text(request.method), target: Array(request.head[request.target.range]),
            authority: request.text(request.authority), transport: request.transport)
        for field in request.fields {
            let name = request.text(field.name)
            if name != "host", name != "content-length" { fields.append(Field(name, request.text(field.value))) }
        }
        body = request.body
    }

    fileprivate mutating func editPath(_ change: (inout [UInt8]) -> Void) {
        let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        var path = Array(target[..<mark])
        change(&path)
        target = path + target[mark...]
    }

    fileprivate mutating func editQuery(_ change: (inout [UInt8]) -> Void) {
        guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else { return }
        var query = Array(target[(mark + 1)...])
        change(&query)
        target = target[...mark] + query
    }
}
