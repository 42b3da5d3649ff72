import CountersignWire

/// Where a request bears a signature, read or not.
enum SigV4Place {
    /// Any version of AWS's: one that is not spoken here is refused by name.
    static func header(of request: Request) -> Bool {
        guard request.names.contains(.authorization) else { return false }
        for field in request.fields where field.known == .authorization {
            let value = request.head.span.extracting(field.value.range)
            if value.count >= 5, value.extracting(0..<5).matches("AWS4-") { return true }
        }
        return false
    }

    static func query(of request: Request) -> Bool {
        guard let query = request.query else { return false }
        let text = request.head.span.extracting(query.range)
        var start = 0
        while let index = text.firstIndex(of: UInt8(ascii: "X"), from: start) {
            let isAtStart = index == 0 || text[index - 1] == UInt8(ascii: "&")
            if isAtStart, isTelling(text.extracting(index..<text.count)) { return true }
            start = index + 1
        }
        return false
    }

    private static func isTelling(_ rest: Span<UInt8>) -> Bool {
        let count = 16
        guard rest.count >= count else { return false }
        let start = rest.extracting(0..<count)
        return start.matches("X-Amz-Signature=") || start.matches("X-Amz-Algorithm=")
    }
}
