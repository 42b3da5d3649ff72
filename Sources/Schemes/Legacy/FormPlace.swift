import CountersignWire

extension Draft {
    /// Where form parameters are added.
    enum FormPlace: Sendable {
        case query, body
        case multipart(Multipart.Boundary)
    }

    /// Adds `parameters`, which are written as that place has them, behind those that are there; in a
    /// multipart body before them.
    mutating func attach(_ parameters: [UInt8], to place: FormPlace) {
        switch place {
        case .query:
            let mark = target.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?")
            let isOpen = target.last == UInt8(ascii: "?") || target.last == UInt8(ascii: "&")
            target += (isOpen ? [] : [mark]) + parameters
        case .multipart: body = parameters + body
        case .body:
            body += (body.isEmpty ? [] : [UInt8(ascii: "&")]) + parameters
            if !fields.contains(where: { $0.name.lowercased() == "content-type" }) {
                set("Content-Type", "application/x-www-form-urlencoded")
            }
        }
    }
}

/// Parameters that a signer adds, written as their place has them.
struct AddedParameters {
    private(set) var text: [UInt8] = []
    private let place: Draft.FormPlace

    init(_ place: Draft.FormPlace) { self.place = place }

    mutating func append(_ name: String, value: borrowing Span<UInt8>) {
        guard case .multipart(let boundary) = place else { return Form.append(name, value, to: &text) }
        text += boundary.delimiter
        text += Array("\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n".utf8)
        value.withUnsafeBufferPointer { text.append(contentsOf: $0) }
        text += [0x0D, 0x0A]
    }

    /// With `sign` behind them.
    func signed(_ sign: String) -> [UInt8] {
        var signed = self
        signed.append("sign", value: Array(sign.utf8).span)
        return signed.text
    }
}
