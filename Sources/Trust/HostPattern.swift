extension Trust {
    /// Which hosts a rule is for: `api.example.com` (that one), `*.example.com` (one label more), `**.example.com` (any
    /// number of labels more, none among them) or an address.
    public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
        enum Kind: Sendable, Hashable {
            case exact(Trust.Host)
            /// The labels behind `*.`
            case oneLabelMore([String])
            /// The labels behind `**.`
            case anyLabelsMore([String])
        }

        let kind: Kind

        /// A star stands for whole labels, at the left, and nowhere else.
        public init(_ text: String) throws(TrustProblem) {
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

        private static func problem(_ text: String) -> TrustProblem {
            TrustProblem(
                "host pattern `\(text)`: expected a name, `*.` or `**.` before a name, or an address; ASCII, without a port"
            )
        }

        /// Whether `host` is one of those that are meant.
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

        /// Of two patterns that match a host the one with the greater rank is meant: it says more of the host.
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

        /// As it is read, in lower case.
        public var description: String {
            switch kind {
            case .exact(let host): host.description
            case .oneLabelMore(let suffix): "*." + suffix.joined(separator: ".")
            case .anyLabelsMore(let suffix): "**." + suffix.joined(separator: ".")
            }
        }
    }
}
