import CountersignWire

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
