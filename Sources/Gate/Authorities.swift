import CountersignWire

/// The hosts that this deployment answers for. A signature for another host's request must not open this one.
package struct Authorities: Sendable {
    private let names: [[UInt8]]

    /// Each `host` or `host:port`. Compared without case; a port that is the transport's default may be left out.
    package init(_ names: [String]) { self.names = names.map { Array($0.lowercased().utf8) } }

    package func check(_ request: Request) throws(Refusal) {
        #if SABOTAGE
            if Sabotage.isOn(.hostUnchecked) { return }
        #endif
        let port = request.transport.defaultPortSuffix
        let host = request.head.span.extracting(request.authority.range)
        for name in names where Authorities.same(host, name.span, besides: port) { return }
        throw Refusal(.malformed, "Host: not an authority of this deployment")
    }

    private static func same(_ left: Span<UInt8>, _ right: Span<UInt8>, besides port: StaticString) -> Bool {
        let left = Authority.normalised(left, without: port)
        let right = Authority.normalised(right, without: port)
        guard left.count == right.count, left.count > 0 else { return false }
        for index in 0..<left.count where ASCII.lowercased(left[index]) != ASCII.lowercased(right[index]) {
            return false
        }
        return true
    }
}
