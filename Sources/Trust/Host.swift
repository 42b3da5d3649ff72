import CountersignWire

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension Trust {
    /// The host that a connection is made to: a DNS name or an address.
    ///
    /// Names are ASCII (internationalised names in their `xn--` form), stored in lower case, and have no dot
    /// at the end. Source: RFC 1123 §2.1, RFC 5890 §2.3.2.1, RFC 9525 §2.
    public struct Host: Sendable, Hashable, CustomStringConvertible {
        enum Kind: Sendable, Hashable {
            /// Labels from left to right.
            case name([String])
            /// 4 or 16 bytes, in the form that certificates use. Source: RFC 5280 §4.2.1.6.
            case address([UInt8])
        }

        let kind: Kind

        /// A host as a URL writes it. IPv6 addresses may stand in brackets.
        public init(_ text: String) throws(TrustError) {
            var bare = Substring(text)
            if bare.first == "[", bare.last == "]" {
                bare = bare.dropFirst().dropLast()
                guard bare.contains(":") else {
                    throw TrustError("host `\(text)`: expected an IPv6 address in brackets")
                }
            }
            if let address = Trust.Host.address(String(bare)) {
                kind = .address(address)
                return
            }
            guard let labels = Trust.Host.labels(bare) else {
                throw TrustError("host `\(text)`: expected a name in ASCII, or an address")
            }
            kind = .name(labels)
        }

        /// As in a URL, but an IPv6 address without its brackets.
        public var description: String {
            switch kind {
            case .name(let labels): labels.joined(separator: ".")
            case .address(let bytes): Trust.Host.text(of: bytes)
            }
        }

        /// Whether this is an address. TLS does not send addresses as a server name. Source: RFC 6066 §3.
        public var isAddress: Bool {
            if case .address = kind { true } else { false }
        }

        /// The labels of a name in lower case; nil if the text is not a name.
        ///
        /// A number as the last label is refused: resolvers read such a name as an address, in forms
        /// (`127.1`, `0x7f.1`) that would match no rule for that address. Source: WHATWG URL §3.5.
        static func labels(_ text: Substring) -> [String]? {
            guard (1...253).contains(text.utf8.count) else { return nil }
            let labels = text.split(separator: ".", omittingEmptySubsequences: false)
            for label in labels {
                guard (1...63).contains(label.utf8.count), label.utf8.allSatisfy(isOfLabels) else {
                    return nil
                }
                guard label.first != "-", label.last != "-" else { return nil }
            }
            guard let last = labels.last, !isNumber(last) else { return nil }
            return labels.map { String(decoding: $0.utf8.map(ASCII.lowercased), as: UTF8.self) }
        }

        private static func isNumber(_ label: Substring) -> Bool {
            guard label.hasPrefix("0x") || label.hasPrefix("0X") else {
                return label.utf8.allSatisfy(ASCII.isDigit)
            }
            return label.dropFirst(2).allSatisfy(\.isHexDigit)
        }

        /// Host names must not contain an underscore, but names with one are in use.
        private static func isOfLabels(_ byte: UInt8) -> Bool {
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_")
        }

        /// Dotted decimal in four parts, or IPv6 without a zone. Source: RFC 6943 §3.1.1 (the strict form),
        /// RFC 4291 §2.2.
        private static func address(_ text: String) -> [UInt8]? {
            // The C library stops at a NUL and would parse only the text before it.
            guard !text.utf8.contains(0) else { return nil }
            var four = in_addr()
            if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: &four) { Array($0) } }
            var six = in6_addr()
            if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: &six) { Array($0) } }
            return nil
        }

        private static func text(of address: [UInt8]) -> String {
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            _ = inet_ntop(address.count == 4 ? AF_INET : AF_INET6, address, &text, socklen_t(text.count))
            return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}

extension Trust {
    /// The hosts that a rule applies to: `api.example.com` (that host), `*.example.com` (one more label),
    /// `**.example.com` (any number of further labels, or none) or an address.
    public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
        enum Kind: Sendable, Hashable {
            case exact(Trust.Host)
            /// The labels after `*.`
            case oneLabelMore([String])
            /// The labels after `**.`
            case anyLabelsMore([String])
        }

        let kind: Kind

        /// A star stands for whole labels, at the left, and nowhere else.
        public init(_ text: String) throws(TrustError) {
            let stars = text.prefix { $0 == "*" }.count
            guard stars > 0 else {
                do {
                    kind = .exact(try Trust.Host(text))
                } catch {
                    throw Trust.HostPattern.problem(text)
                }
                return
            }
            let rest = text.dropFirst(stars)
            guard stars <= 2, rest.first == ".", let labels = Trust.Host.labels(rest.dropFirst()) else {
                throw Trust.HostPattern.problem(text)
            }
            kind = stars == 1 ? .oneLabelMore(labels) : .anyLabelsMore(labels)
        }

        private static func problem(_ text: String) -> TrustError {
            TrustError(
                "host pattern `\(text)`: expected a name, `*.` or `**.` before a name, "
                    + "or an address; ASCII, without a port"
            )
        }

        /// Whether the pattern matches `host`.
        public func matches(_ host: Trust.Host) -> Bool {
            switch kind {
            case .exact(let own): return own == host
            case .oneLabelMore(let suffix):
                guard case .name(let labels) = host.kind else { return false }
                return labels.count == suffix.count + 1 && labels.dropFirst().elementsEqual(suffix)
            case .anyLabelsMore(let suffix):
                guard case .name(let labels) = host.kind else { return false }
                return labels.count >= suffix.count && labels.suffix(suffix.count).elementsEqual(suffix)
            }
        }

        /// Of two patterns that match a host, the one with the greater rank applies: it is more specific.
        var rank: Rank {
            switch kind {
            case .exact: Rank(labels: Int.max, kind: 2)
            case .oneLabelMore(let suffix): Rank(labels: suffix.count, kind: 1)
            case .anyLabelsMore(let suffix): Rank(labels: suffix.count, kind: 0)
            }
        }

        struct Rank: Comparable {
            var labels: Int
            var kind: Int

            static func < (left: Rank, right: Rank) -> Bool {
                (left.labels, left.kind) < (right.labels, right.kind)
            }
        }

        /// The text that ``init(_:)`` reads, in lower case.
        public var description: String {
            switch kind {
            case .exact(let host): host.description
            case .oneLabelMore(let suffix): "*." + suffix.joined(separator: ".")
            case .anyLabelsMore(let suffix): "**." + suffix.joined(separator: ".")
            }
        }
    }
}
