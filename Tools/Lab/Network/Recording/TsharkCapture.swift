import Glibc

/// Wireshark's `tshark` on the loopback interface: an independent program that records the system's packets.
final class TsharkCapture: Sendable {
    private let process: ChildProcess
    private let marker: LoopbackListener
    private let port: UInt16
    private let folder: String
    private var output: String { "\(folder)/packets" }

    /// Starts to capture traffic from and to `port`. Blocks its thread until the capture runs, fifteen
    /// seconds at most.
    init(port: UInt16) throws(LabError) {
        folder = try Files.makeTemporaryFolder("tshark")
        self.port = port
        // A connection to this port leaves a packet that marks the end of what was captured before.
        marker = try LoopbackListener { close($0) }
        do {
            process = try TsharkCapture.start(
                in: folder, filter: "tcp port \(port) or tcp port \(marker.number)")
        } catch {
            marker.stop()
            Files.removeFolder(folder)
            throw error
        }
        guard awaitMarker(within: 15) else {
            let said = (try? Files.read("\(folder)/complaints")).map {
                String(decoding: $0.suffix(300), as: UTF8.self)
            }
            end()
            throw LabError(
                "tshark does not capture on lo; is it installed, and may this user capture? It says: "
                    + "\(said ?? "")"
            )
        }
    }

    /// Its output goes to a file that can be read at any time; its temporary files go to the same folder.
    private static func start(in folder: String, filter: String) throws(LabError) -> ChildProcess {
        try ChildProcess(
            [
                "/bin/sh", "-c", "cd \"$HOME\" && exec tshark \"$@\" >packets", "tshark", "-i", "lo", "-n",
                "-l", "-f",
                filter, "-T",
                "fields", "-e", "tcp.stream", "-e", "tcp.srcport", "-e", "tcp.dstport", "-e", "tcp.seq_raw",
                "-e",
                "tcp.flags.syn", "-e", "tcp.payload",
            ],
            environment: [
                "PATH": "/usr/bin:/bin:/usr/sbin:/usr/local/bin", "TMPDIR": folder, "HOME": folder,
            ],
            errors: "\(folder)/complaints")
    }

    /// Stops tshark, and returns what it captured. Empty where it has ended early.
    func stop() -> Recording {
        let isWhole = awaitMarker(within: 5)
        process.end()
        let text = isWhole ? (try? Files.read(output)) ?? [] : []
        Files.removeFolder(folder)
        marker.stop()
        return Recording(TsharkPackets(text).connections(with: port))
    }

    private func end() {
        process.end(SIGKILL)
        Files.removeFolder(folder)
        marker.stop()
    }

    /// Sends markers until one of them is captured. Several are needed: packets before the start of the
    /// capture are lost, and packets are printed with a delay.
    private func awaitMarker(within seconds: Int) -> Bool {
        let before = (try? Files.read(output).count) ?? 0
        var marks: Set<UInt16> = []
        for round in 0..<(seconds * 20) {
            if round.isMultiple(of: 10) {
                guard let link = try? RawConnection.open(to: "127.0.0.1", port: marker.number),
                    let own = Socket.port(link.descriptor)
                else { return false }
                marks.insert(own)
            }
            usleep(50_000)
            let printed = (try? Files.read(output)) ?? []
            if TsharkPackets(Array(printed.dropFirst(before))).all.contains(where: {
                $0.target == marker.number && marks.contains($0.source)
            }) {
                return true
            }
        }
        return false
    }
}

/// TCP segments as `tshark -T fields` prints them, separated by tabs: stream, both ports, sequence number,
/// SYN, payload in hexadecimal.
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

    /// An incomplete last line is left out.
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

    /// The connections with a server on that port, with each side's segments in order and without duplicates.
    func connections(with port: UInt16) -> [RecordedConnection] {
        var order: [Int] = []
        var sides: [Int: (client: TCPReassembly, server: TCPReassembly)] = [:]
        for packet in all where packet.source == port || packet.target == port {
            if sides[packet.stream] == nil { order.append(packet.stream) }
            var both = sides[packet.stream] ?? (TCPReassembly(), TCPReassembly())
            if packet.source == port { both.server.add(packet) } else { both.client.add(packet) }
            sides[packet.stream] = both
        }
        return order.compactMap { stream in
            let both = sides[stream].map {
                RecordedConnection(client: $0.client.bytes, server: $0.server.bytes)
            }
            return both == RecordedConnection() ? nil : both
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

/// Reassembles one direction of a connection. Source: RFC 9293 §3.4.
struct TCPReassembly {
    private var start: UInt32?
    private var parts: [UInt32: [UInt8]] = [:]

    mutating func add(_ packet: TsharkPackets.Packet) {
        // A SYN counts as one byte. Without one, the first captured segment is the first.
        if packet.isFirst { start = packet.sequence &+ 1 }
        if start == nil, !packet.payload.isEmpty { start = packet.sequence }
        guard let start, !packet.payload.isEmpty else { return }
        let place = packet.sequence &- start
        // A retransmitted segment may be longer.
        if packet.payload.count > parts[place]?.count ?? 0 { parts[place] = packet.payload }
    }

    /// The bytes up to the first gap.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for (place, part) in parts.sorted(by: { $0.key < $1.key }) {
            guard place <= bytes.count else { break }
            bytes += part.dropFirst(bytes.count - Int(place))
        }
        return bytes
    }
}
