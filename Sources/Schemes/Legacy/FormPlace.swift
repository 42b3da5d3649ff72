import CountersignWire

extension Request {
    /// Whether a backend may take the body for a form, by any Content-Type there is: what follows the media type does not
    /// matter, and backends that look for its end stop at a comma, too.
    var hasFormType: Bool {
        guard names.contains(.contentType) else { return false }
        for field in fields where field.known == .contentType {
            let type = head.span.extracting(field.value.range)
            var end = 0
            while end < type.count, type[end] > 0x20, type[end] != UInt8(ascii: ";"), type[end] != UInt8(ascii: ",") {
                end += 1
            }
            if type.extracting(0..<end).matchesWithoutCase("application/x-www-form-urlencoded") { return true }
        }
        return false
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
