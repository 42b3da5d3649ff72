import CountersignWire

/// Which of the backend's routes a release opens without a session. The rule is applied to the target's raw bytes, which are
/// what is forwarded; where a backend could take them for another path than we do, they are refused.
extension Policy.RouteSet {
    func admit(_ request: Request) throws(Refusal) {
        guard case .under(let routes) = self else { return }
        let path = request.head.span.extracting(request.path.range)
        if let ambiguity = ambiguity(of: path) {
            throw Refusal(.malformed, "the path has \(ambiguity); without a session it must have one reading")
        }
        for route in routes where path.isAt(or: route.span) { return }
        throw Refusal(.sessionEnded, "this route needs a session")
    }

    /// What in a path has two readings; nil where nothing has.
    func ambiguity(of path: Span<UInt8>) -> StaticString? {
        var start = 1
        for index in 0...path.count {
            guard index == path.count || path[index] == UInt8(ascii: "/") else {
                if path[index] == UInt8(ascii: "\\") { return "a backslash" }
                if path[index] == UInt8(ascii: "%"), let flaw = flaw(ofEscape: path.extracting(index...)) {
                    return flaw
                }
                continue
            }
            guard index >= start else { continue }
            // `..;x` is `..` to backends that know parameters of segments.
            let segment = path.extracting(start..<index)
            let name = segment.extracting(0..<(segment.firstIndex(of: UInt8(ascii: ";"), from: 0) ?? segment.count))
            if name.matches(".") || name.matches("..") { return "a dot segment" }
            if name.isEmpty, index < path.count || segment.count > 0 { return "an empty segment" }
            start = index + 1
        }
        return nil
    }

    /// Escapes that some readers undo before they look for a route. Source: RFC 3986 §2.3, §6.2.2.2.
    private func flaw(ofEscape text: Span<UInt8>) -> StaticString? {
        guard let byte = Percent.byte(in: text, at: 1) else { return "a bare %" }
        switch byte {
        case UInt8(ascii: "/"), UInt8(ascii: "\\"): return "an encoded slash"
        case 0..<0x20: return "an encoded control character"
        default: return Percent.isUnreserved(byte) ? "an encoded unreserved character" : nil
        }
    }
}

extension Span<UInt8> {
    /// Whether this path is `route`, or goes on behind it with a `/`.
    fileprivate func isAt(or route: Span<UInt8>) -> Bool {
        guard count >= route.count, extracting(0..<route.count).matches(route) else { return false }
        return count == route.count || self[route.count] == UInt8(ascii: "/")
    }
}
