import CountersignTransport
import CountersignWire

/// One cookie of the server. Source: RFC 6265 §5.3.
public struct Cookie: Sendable, Hashable {
    /// The name, compared with case.
    public let name: String
    /// Often a secret, so it is not printed.
    public let value: String
    /// The path below which it is sent; begins with `/`.
    public let path: String
    /// When it expires, in whole Unix seconds; nil for one that ends with the process.
    public let expires: Int64?
    /// Whether it is sent over TLS alone.
    public let isSecure: Bool

    /// Bytes of one `Set-Cookie` field that is read; a longer one is ignored. Source: RFC 6265 §6.1.
    private static let mostBytes = 4096
}

extension Cookie: CustomStringConvertible, CustomReflectable {
    /// The name and the path.
    public var description: String { "cookie \(name) for \(path)" }

    /// A dump shows no more than a log does.
    public var customMirror: Mirror { Mirror(self, children: ["name": name, "path": path]) }
}

extension Cookie {
    /// The context in which a cookie is set: the request, and the time of its response.
    package struct Setting {
        /// The server's host in lower case, without a port.
        let host: String
        /// The request's target without its query.
        let path: String
        let isEncrypted: Bool
        /// Whole Unix seconds.
        let time: Int64

        package init(host: String, path: String, isEncrypted: Bool, time: Int64) {
            (self.host, self.path, self.isEncrypted, self.time) = (host, path, isEncrypted, time)
        }
    }

    /// Parses a `Set-Cookie` field; nil if it sets no cookie. An expired cookie removes the one of the same
    /// name. Source: RFC 6265 §5.2; the prefixes of names: draft-ietf-httpbis-rfc6265bis §4.1.3.
    init?(_ field: String, setting: Setting) {
        guard field.utf8.count <= Cookie.mostBytes, field.utf8.allSatisfy(Cookie.isText) else { return nil }
        // Bytes, not characters: a combining character behind `;` would join it and hide it.
        let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            .map(Substring.init)
        guard let pair = parts.first, let (name, value) = Cookie.pair(pair), !name.isEmpty, let value else {
            return nil
        }
        var (path, expires, lifetime) = (Cookie.defaultPath(of: setting.path), Int64?.none, Int64?.none)
        var (isSecure, hasDomain, hasPath) = (false, false, false)
        for part in parts.dropFirst() {
            guard let (attribute, text) = Cookie.pair(part) else { continue }
            switch (attribute.lowercased(), text) {
            case ("expires", let text?): expires = CookieDate.seconds(text) ?? expires
            case ("max-age", let text?): lifetime = Cookie.lifetime(text) ?? lifetime
            case ("domain", let text?) where !text.isEmpty:
                guard Cookie.domain(text.lowercased(), matches: setting.host) else { return nil }
                hasDomain = true
            case ("path", let text?) where text.utf8.first == UInt8(ascii: "/"):
                (path, hasPath) = (text, true)
            case ("secure", _): isSecure = true
            default: break
            }
        }
        guard setting.isEncrypted || !isSecure else { return nil }
        let isRootAlone = isSecure && hasPath && path == "/" && !hasDomain
        if name.lowercased().hasPrefix("__secure-"), !isSecure { return nil }
        if name.lowercased().hasPrefix("__host-"), !isRootAlone { return nil }
        if let lifetime { expires = lifetime > 0 ? setting.time.addingClamped(lifetime) : 0 }
        (self.name, self.value, self.path, self.expires, self.isSecure) = (
            name, value, path, expires, isSecure
        )
    }

    /// Whether it goes with a request for `path` at `time`. Source: RFC 6265 §5.1.4, §5.4.
    func isFor(path: String, isEncrypted: Bool, at time: Int64) -> Bool {
        guard isEncrypted || !isSecure, isAlive(at: time) else { return false }
        guard path.utf8.starts(with: self.path.utf8) else { return false }
        let slash = UInt8(ascii: "/")
        let rest = path.utf8.dropFirst(self.path.utf8.count)
        return rest.isEmpty || self.path.utf8.last == slash || rest.first == slash
    }

    func isAlive(at time: Int64) -> Bool { expires.map { $0 > time } ?? true }

    private static func isText(_ byte: UInt8) -> Bool { byte == 9 || (byte >= 32 && byte != 127) }

    /// A name and, behind `=`, a value; nil for white space alone.
    private static func pair(_ text: Substring) -> (name: String, value: String?)? {
        let halves = text.utf8.split(
            separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = halves.first.map(trimmed), halves.count == 2 || !name.isEmpty else { return nil }
        return (name, halves.count == 2 ? trimmed(halves[1]) : nil)
    }

    private static func trimmed(_ text: Substring.UTF8View) -> String {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return String(Substring(text))
    }

    /// Seconds, negative ones too. A number that does not fit means no end. Source: RFC 6265 §5.2.2.
    private static func lifetime(_ text: String) -> Int64? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return Int64(text) ?? (text.hasPrefix("-") ? 0 : .max)
    }

    /// Whether the cookie's domain covers the host. An address is not a domain. Source: RFC 6265 §5.1.3.
    private static func domain(_ text: String, matches host: String) -> Bool {
        let domain = text.hasPrefix(".") ? String(text.dropFirst()) : text
        let isAddress =
            host.contains(":") || host.utf8.allSatisfy { ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }
        return domain == host || (!isAddress && !domain.isEmpty && host.hasSuffix(".\(domain)"))
    }

    /// Source: RFC 6265 §5.1.4.
    private static func defaultPath(of path: String) -> String {
        let slash = UInt8(ascii: "/")
        guard path.utf8.first == slash, let last = path.utf8.lastIndex(of: slash), last != path.startIndex
        else {
            return "/"
        }
        return String(path[..<last])
    }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}

/// The time in a cookie's `Expires`, which servers write in many ways. Source: RFC 6265 §5.1.1.
enum CookieDate {
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// Whole Unix seconds; nil if the text is not a time.
    static func seconds(_ text: String) -> Int64? {
        var (clock, day, month, year) = ([Int]?.none, Int?.none, Int?.none, Int?.none)
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            let word = String(Substring(token)).lowercased()
            if clock == nil, let found = time(word) {
                clock = found
            } else if day == nil, let found = leadingNumber(word, digits: 1...2) {
                day = found
            } else if month == nil, let found = months.firstIndex(of: String(word.prefix(3))) {
                month = found + 1
            } else if year == nil, let found = leadingNumber(word, digits: 2...4) {
                year = found
            }
        }
        guard let clock, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 }
        if (0...69).contains(year) { year += 2000 }
        guard year >= 1601, clock[0] <= 23, clock[1] <= 59, clock[2] <= 59 else { return nil }
        guard let days = days(year: year, month: month, day: day) else { return nil }
        return days * 86_400 + Int64(clock[0] * 3600 + clock[1] * 60 + clock[2])
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// `h:m:s`, each of one or two digits; text after the last digit is ignored.
    private static func time(_ word: String) -> [Int]? {
        let parts = word.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.allSatisfy(ASCII.isDigit),
            parts[1].utf8.allSatisfy(ASCII.isDigit)
        else {
            return nil
        }
        let numbers = parts.compactMap { leadingNumber(String($0), digits: 1...2) }
        return numbers.count == 3 ? numbers : nil
    }

    /// The number at the start if it has as many digits as `digits` allows.
    private static func leadingNumber(_ word: String, digits: ClosedRange<Int>) -> Int? {
        let number = word.utf8.prefix(while: ASCII.isDigit)
        guard digits.contains(number.count) else { return nil }
        return Int(String(Substring(number)))
    }

    /// Days since 1970-01-01; nil for a day that the month does not have. Source: the Gregorian calendar's
    /// rule of leap years.
    private static func days(year: Int, month: Int, day: Int) -> Int64? {
        let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (1...lengths[month - 1]).contains(day) else { return nil }
        let before = year - 1
        let leapDays = before / 4 - before / 100 + before / 400
        let upToYear = before * 365 + leapDays
        let epoch = 719_162  // Days from year 1 to 1970.
        return Int64(upToYear - epoch + lengths[..<(month - 1)].reduce(0, +) + day - 1)
    }
}
