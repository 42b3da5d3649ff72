/// A record as it stands on the wire. Source: RFC 5246 §6.2, RFC 8446 §5.1.
struct TLSRecord: Equatable {
    enum Kind: UInt8 {
        case changeCipherSpec = 20
        case alert, handshake
        case applicationData
    }

    var kind: Kind
    var version: UInt16
    var payload: [UInt8]

    /// All whole records at the beginning of a stream.
    static func all(in stream: [UInt8]) -> [TLSRecord] {
        var records: [TLSRecord] = []
        var rest = stream[...]
        while rest.count >= 5 {
            let head = Array(rest.prefix(5))
            let count = Int(head[3]) << 8 | Int(head[4])
            guard let kind = Kind(rawValue: head[0]), rest.count >= 5 + count else { break }
            records.append(
                TLSRecord(
                    kind: kind, version: UInt16(head[1]) << 8 | UInt16(head[2]),
                    payload: Array(rest.dropFirst(5).prefix(count))))
            rest = rest.dropFirst(5 + count)
        }
        return records
    }

    /// What an eavesdropper makes of it.
    var shown: String {
        let name =
            switch kind {
            case .changeCipherSpec: "change_cipher_spec"
            case .alert: "alert"
            case .handshake: "handshake"
            case .applicationData: "application_data"
            }
        let hex = payload.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
        return "\(name), \(payload.count) bytes: \(hex)\(payload.count > 16 ? " …" : "")"
    }
}
