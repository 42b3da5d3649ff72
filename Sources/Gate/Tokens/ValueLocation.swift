import CountersignWire

/// Where clients send a value: a part of the request, and the name of the value there.
package enum ValueLocation: Sendable, Equatable {
    /// The token after `Bearer` in the Authorization field.
    case bearer
    /// A parameter of a form body, of the query, or a cookie.
    case form([UInt8])
    case query([UInt8])
    case cookie([UInt8])
    /// A field; the name is in lower case.
    case header([UInt8])
    /// The group that the pattern captures in the User-Agent field.
    case userAgent(TextPattern)

    /// The kinds, as written in policies.
    package enum Kind: String, Sendable, CaseIterable {
        case bearer, form, query, cookie, header
        case userAgent = "user-agent"
    }

    package static let most = 8
    /// The longest name in bytes.
    package static let longestName = 64

    package var kind: Kind {
        switch self {
        case .bearer: .bearer
        case .form: .form
        case .query: .query
        case .cookie: .cookie
        case .header: .header
        case .userAgent: .userAgent
        }
    }

    /// Reads `bearer,form:NAME,query:NAME,cookie:NAME,header:NAME,user-agent:/PATTERN/`: at most ``most``
    /// locations, all different. Nil if the text has another form or names a kind that is not in `kinds`.
    package static func list(_ text: String, of kinds: Set<Kind>) -> [ValueLocation]? {
        let bytes = Array(text.utf8)
        var places: [ValueLocation] = []
        var start = 0
        while start <= bytes.count {
            let end = endOfPlace(in: bytes.span, from: start)
            guard places.count < most, let place = ValueLocation(bytes.span.extracting(start..<end)),
                kinds.contains(place.kind), !places.contains(place)
            else { return nil }
            places.append(place)
            start = end + 1
        }
        return places
    }

    /// A comma inside a pattern is part of the pattern.
    private static func endOfPlace(in text: Span<UInt8>, from start: Int) -> Int {
        var index = start
        var isPattern = false
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "/"): isPattern.toggle()
            case UInt8(ascii: "\\") where isPattern: index += 1
            case UInt8(ascii: ",") where !isPattern: return index
            default: break
            }
            index += 1
        }
        return text.count
    }

    private init?(_ text: Span<UInt8>) {
        if text.matches("bearer") {
            self = .bearer
            return
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":"), from: 0),
            let kind = Kind(rawValue: text.extracting(0..<colon).text)
        else { return nil }
        let value = text.extracting((colon + 1)...)
        switch kind {
        case .bearer: return nil
        case .form, .query, .cookie:
            guard ValueLocation.isName(value) else { return nil }
            let name = value.withUnsafeBufferPointer { Array($0) }
            self = kind == .form ? .form(name) : kind == .query ? .query(name) : .cookie(name)
        case .header:
            guard ValueLocation.isFieldName(value) else { return nil }
            self = .header((0..<value.count).map { ASCII.lowercased(value[$0]) })
        case .userAgent:
            guard value.count > 2, value[0] == UInt8(ascii: "/"), value[value.count - 1] == UInt8(ascii: "/"),
                let pattern = TextPattern(value.extracting(1..<(value.count - 1)))
            else { return nil }
            self = .userAgent(pattern)
        }
    }

    /// Letters, digits, `-`, `_` and `.`, which need no escaping in a form, a query or a cookie.
    private static func isName(_ name: Span<UInt8>) -> Bool {
        guard (1...longestName).contains(name.count) else { return false }
        for index in 0..<name.count {
            switch name[index] {
            case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): continue
            case let byte where ASCII.isLetter(byte) || ASCII.isDigit(byte): continue
            default: return false
            }
        }
        return true
    }

    /// Field names with `_` are excluded because such fields are dropped. Fields with a meaning for HTTP or
    /// for the gateway are excluded because removing them would change the request.
    private static func isFieldName(_ name: Span<UInt8>) -> Bool {
        guard isName(name) else { return false }
        for index in 0..<name.count where name[index] == UInt8(ascii: "_") || name[index] == UInt8(ascii: ".")
        {
            return false
        }
        let lower = name.text.lowercased()
        let reserved = [
            "host", "te", "expect", "trailer", "upgrade", "connection", "keep-alive", "transfer-encoding",
            "authorization",
            "cookie", "origin", "date", "accept", "user-agent", "idempotency-key", "signature",
            "signature-input",
            "http2-settings", "forwarded",
        ]
        return !reserved.contains(lower)
            && !["content-", "countersign", "proxy-", "x-forwarded", "x-amz-", "x-auth-"].contains {
                lower.hasPrefix($0)
            }
    }
}
