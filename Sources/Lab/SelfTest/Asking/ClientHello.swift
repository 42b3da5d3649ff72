import CountersignSeal
import CountersignTrust

/// The first message of an old client's handshake, written by hand: libraries of today refuse to offer old versions, and that would say
/// nothing about the server. Source: RFC 4346 §7.4.1.2; RFC 8422 §5.1.
struct ClientHello {
    /// The highest that is offered.
    enum Version: UInt8 { case tls10 = 1, tls11 = 2 }

    let bytes: [UInt8]

    init(_ version: Version, to host: Trust.Host) {
        var extensions: [UInt8] = []
        if !host.isAddress {
            let name = Array(host.description.utf8)
            extensions += ClientHello.block(0, ClientHello.counted([0] + ClientHello.counted(name)))
        }
        // P-256 and P-384; uncompressed points.
        extensions += ClientHello.block(10, ClientHello.counted([0, 23, 0, 24]))
        extensions += ClientHello.block(11, [1, 0])
        // ECDHE with ECDSA and RSA, then RSA alone: AES-128-CBC-SHA and its like, which all old servers have.
        let suites: [UInt8] = [0xC0, 0x09, 0xC0, 0x13, 0xC0, 0x0A, 0xC0, 0x14, 0x00, 0x2F, 0x00, 0x35, 0x00, 0x0A]
        let body =
            [3, version.rawValue] + SystemRandom().bytes(32) + [0] + ClientHello.counted(suites) + [1, 0]
            + ClientHello.counted(extensions)
        let length = body.count
        let message = [1, 0, UInt8(length >> 8), UInt8(length & 0xFF)] + body
        bytes = [22, 3, 1] + ClientHello.counted(message)
    }

    private static func block(_ type: UInt8, _ content: [UInt8]) -> [UInt8] { [0, type] + counted(content) }

    /// With its length in two bytes before it.
    private static func counted(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    /// How the other end goes on.
    enum Reply: Equatable, CustomStringConvertible {
        /// With its own half of the handshake: it speaks that version.
        case goesOn
        /// RFC 4346 §7.2: 70 is protocol_version, 40 handshake_failure.
        case alert(Int)
        case ends
        case silent

        init(_ connection: Link) {
            var bytes: [UInt8] = []
            while bytes.count < 7 {
                switch connection.read() {
                case .bytes(let more): bytes += more
                case .end(let reason):
                    self = reason == Link.silence ? .silent : .ends
                    return
                }
            }
            self = bytes[0] == 21 ? .alert(Int(bytes[6])) : bytes[0] == 22 ? .goesOn : .ends
        }

        var description: String {
            switch self {
            case .goesOn: "the server goes on with it"
            case .alert(let code): "a TLS alert (\(code))"
            case .ends: "the connection ended"
            case .silent: "nothing"
            }
        }
    }
}
