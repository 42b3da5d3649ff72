import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignSeal
import CountersignWire

/// The names of entries and markers. An entry's name is a keyed fingerprint of 128 bits: a reader of Redis
/// learns nothing from it, and a caller can choose neither its slot nor a collision. The part in braces
/// decides on the hash slot of Redis Cluster, so that a script finds the marker beside the entry.
package struct RedisReplayKeys: Sendable {
    /// The number of slots that have a marker.
    static let tags = 256

    private let hash: KeyedHash
    private let prefix: String

    /// Deployments with different secrets can share a server.
    package init(_ secret: Secret) {
        hash = KeyedHash(secret, for: "redis replay entries")
        let part = HKDFSHA512.expand(
            secret, info: Array("countersign/1 redis replay deployment".utf8), count: 16)
        let name = part.withExposedBytes { bytes in (0..<6).map { bytes[$0] } }
        prefix = "cs:" + Hex.encode(name.span)
    }

    func names(of entry: ReplayEntry) -> (entry: String, marker: String) {
        var (low, high) = entry.fingerprint(by: hash)
        let tag = Int(truncatingIfNeeded: low & 0xFF)
        var bytes = [UInt8](repeating: 0, count: 16)
        for index in 0..<8 {
            bytes[index] = UInt8(truncatingIfNeeded: low)
            bytes[8 + index] = UInt8(truncatingIfNeeded: high)
            (low, high) = (low >> 8, high >> 8)
        }
        return ("\(place(tag))\(Hex.encode(bytes.span))", marker(tag))
    }

    /// The name of the server's random identifier.
    var server: String { "\(prefix):server" }

    func marker(_ tag: Int) -> String { "\(place(tag))epoch" }

    /// The head of the store (``SharedReplaySettings/exchangeHead``).
    var head: String { "\(prefix):head" }

    /// An entry of no request: its name is the first 16 random bytes, in the slot of the last one.
    func probe(_ random: [UInt8]) -> (entry: String, marker: String) {
        let tag = Int(random[16])
        return ("\(place(tag))probe-\(Hex.encode(random.span.extracting(0..<16)))", marker(tag))
    }

    private func place(_ tag: Int) -> String {
        let digits = [UInt8(truncatingIfNeeded: tag)]
        return "\(prefix):{\(Hex.encode(digits.span))}:"
    }
}

/// What a node's loops need to insert entries: the master, and the epoch that it holds.
struct RedisReplayGrant: ReplayGrant {
    let epoch: ReplayEpoch
    let target: UpstreamTarget
    /// The server's name for messages.
    let server: String
    /// The name of the script in the server.
    let script: String
}

/// The one script: inserts an entry if it is absent, and if the slot's marker shows that nothing was lost.
enum RedisReplayScript {
    enum Outcome: Int64 {
        case clocksDiffer = -2
        case epochLost = -1
        case present = 0
        case inserted = 1

        var result: InsertionOutcome {
            switch self {
            case .inserted: .inserted
            case .present: .present
            case .epochLost: .failed("Redis lost the epoch")
            case .clocksDiffer:
                .failed(
                    "the clock of Redis differs from this machine's by more than "
                        + "\(ReplayEpoch.clockTolerance) s")
            }
        }
    }

    /// KEYS: the entry and the slot's marker. ARGV: the epoch's token, the node's time in seconds, and when
    /// the entry ends, in milliseconds.
    static let text = """
        if redis.call('GET', KEYS[2]) ~= ARGV[1] then return -1 end
        local difference = tonumber(redis.call('TIME')[1]) - tonumber(ARGV[2])
        if difference > \(ReplayEpoch.clockTolerance) or difference < -\(ReplayEpoch.clockTolerance) then
            return -2
        end
        if redis.call('SET', KEYS[1], '', 'NX', 'PXAT', ARGV[3]) then return 1 end
        return 0
        """

    static func call(
        _ name: String, names: (entry: String, marker: String), epoch: ReplayEpoch, created: Int64, now: Int64
    ) -> [UInt8] {
        let end = (created + epoch.need.seconds) * 1_000
        return RESPCommand.encode([
            "EVALSHA", name, "2", names.entry, names.marker, epoch.token, String(now), String(end),
        ])
    }
}
