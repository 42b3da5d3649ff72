/// TCP segments as `tshark -T fields` prints them: stream, both ports, sequence number, SYN, payload in hex, with tabs between.
struct TsharkPackets {
    struct Packet: Equatable {
        var stream: Int
        var source: UInt16
        var target: UInt16
        var sequence: UInt32
        var isFirst: Bool
        var payload: [UInt8]
    }

    var all: [Packet]

    /// A last line that is still being written is left out.
    init(_ text: [UInt8]) {
        all = []
        var lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        lines.removeLast()
        for line in lines {
            let fields = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
            guard fields.count == 6 else { continue }
            let words = fields.prefix(5).map { String(decoding: $0, as: UTF8.self) }
            guard let stream = Int(words[0]), let source = UInt16(words[1]), let target = UInt16(words[2]),
                let sequence = UInt32(words[3])
            else { continue }
            all.append(
                Packet(
                    stream: stream, source: source, target: target, sequence: sequence,
                    isFirst: words[4] == "1" || words[4] == "True", payload: TsharkPackets.bytes(fields[5])))
        }
    }

    /// What was said with a server on that port, each side's segments in their order, each once.
    func conversations(with port: UInt16) -> [Conversation] {
        var order: [Int] = []
        var sides: [Int: (client: Segments, server: Segments)] = [:]
        for packet in all where packet.source == port || packet.target == port {
            if sides[packet.stream] == nil { order.append(packet.stream) }
            var both = sides[packet.stream] ?? (Segments(), Segments())
            if packet.source == port { both.server.take(packet) } else { both.client.take(packet) }
            sides[packet.stream] = both
        }
        return order.compactMap { stream in
            let both = sides[stream].map { Conversation(client: $0.client.bytes, server: $0.server.bytes) }
            return both == Conversation() ? nil : both
        }
    }

    private static func bytes(_ hex: ArraySlice<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(hex.count / 2)
        var high: UInt8?
        for digit in hex {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: continue
            }
            if let first = high { bytes.append(first << 4 | value) }
            high = high == nil ? value : nil
        }
        return bytes
    }
}

/// One direction of a connection, put together. Source: RFC 9293 §3.4.
struct Segments {
    private var start: UInt32?
    private var parts: [UInt32: [UInt8]] = [:]

    mutating func take(_ packet: TsharkPackets.Packet) {
        // A SYN counts as one byte. Without one, the first that is seen is the first.
        if packet.isFirst { start = packet.sequence &+ 1 }
        if start == nil, !packet.payload.isEmpty { start = packet.sequence }
        guard let start, !packet.payload.isEmpty else { return }
        let place = packet.sequence &- start
        // Sent again, it may have grown.
        if packet.payload.count > parts[place]?.count ?? 0 { parts[place] = packet.payload }
    }

    /// Up to the first gap.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for (place, part) in parts.sorted(by: { $0.key < $1.key }) {
            guard place <= bytes.count else { break }
            bytes += part.dropFirst(bytes.count - Int(place))
        }
        return bytes
    }
}
