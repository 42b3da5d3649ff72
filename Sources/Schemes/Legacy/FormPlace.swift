import CountersignWire

extension Request {
    /// Whether the body is a form by its type; parameters of the media type do not matter.
    var hasFormType: Bool {
        guard let type = value(of: .contentType) else { return false }
        let bytes = head.span.extracting(type.range)
        var end = 0
        while end < bytes.count, bytes[end] != UInt8(ascii: ";"), bytes[end] != 0x20, bytes[end] != 0x09 { end += 1 }
        return bytes.extracting(0..<end).matchesWithoutCase("application/x-www-form-urlencoded")
    }
}

extension Draft {
    /// Where form parameters are added.
    enum FormPlace {
        case query, body
    }

    /// Adds `parameters`, which are escaped and joined already, behind those that are there.
    mutating func attach(_ parameters: [UInt8], to place: FormPlace) {
        switch place {
        case .query:
            let mark = target.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?")
            let isOpen = target.last == UInt8(ascii: "?") || target.last == UInt8(ascii: "&")
            target += (isOpen ? [] : [mark]) + parameters
        case .body:
            body += (body.isEmpty ? [] : [UInt8(ascii: "&")]) + parameters
            if !fields.contains(where: { $0.name.lowercased() == "content-type" }) {
                set("Content-Type", "application/x-www-form-urlencoded")
            }
        }
    }
}
