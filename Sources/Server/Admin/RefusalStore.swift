import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignThreads
import CountersignWire

/// Refused requests on the disk, for the console and for commands, also after a restart. Callers that have
/// proved something have a separate ring with half of the room, so that strangers cannot displace them.
/// They share it (``VerifiedBudget``): in an hour, records of half of that ring are accepted, of which no
/// party has more than a part. So a record stays for an hour or more, whatever other callers send.
///
/// Thread-safe. A separate thread writes. The store drops and counts records that the thread cannot accept at
/// once.
package final class RefusalStore: Sendable {
    /// The most records that wait for the disk.
    private static let mostWaiting = 4_096
    /// The most records that a search reads in each ring, except a search by id.
    package static let mostRead = 5_000

    /// A ring that is only read may not exist yet.
    private struct Rings {
        let proven: RefusalRing?
        let unproven: RefusalRing?
        /// What callers with proof share; nil without their ring.
        let limit: RateLimit?
        var shared = VerifiedBudget(.always)

        var all: [RefusalRing] { [proven, unproven].compactMap(\.self) }

        init(proven: RefusalRing?, unproven: RefusalRing?) {
            self.proven = proven
            self.unproven = unproven
            limit = proven.map {
                RateLimit(burst: $0.slots / 2, interval: 2 * 3_600_000_000 / Int64($0.slots))
            }
        }

        /// False if the record is not kept.
        mutating func add(_ record: Waiting) -> Bool {
            let (bytes, refusal) = (record.refusal.encoded, record.refusal)
            guard let party = record.party else {
                return unproven?.append(bytes, id: refusal.id, at: refusal.time) ?? false
            }
            let slots = RefusalRing.slotCount(of: bytes.count)
            guard let proven, let limit,
                shared.take(slots, of: limit, for: party, at: record.at * 1_000_000)
            else { return false }
            return proven.append(bytes, id: refusal.id, at: refusal.time)
        }
    }

    private struct Waiting: Sendable {
        let refusal: RecentRefusal
        let party: VerifiedParty?
        /// Seconds of a monotonic clock.
        let at: Int64
    }

    private let rings: Locked<Rings>
    private let monotonicSeconds: @Sendable () -> Int64
    private let waiting = Monitor<(records: [Waiting], isOver: Bool)>(([], false))
    private let lost = Locked<UInt64>(0)
    private let writer = Locked<WorkerThreads?>(nil)

    /// Opens the store of that data folder. `bytes` is the size of both rings together.
    package convenience init(in folder: String, bytes: Int) throws(OperationalError) {
        try self.init(in: folder, bytes: bytes, monotonicSeconds: EventLoop.monotonicSeconds)
    }

    init(
        in folder: String, bytes: Int, monotonicSeconds: @escaping @Sendable () -> Int64
    ) throws(OperationalError) {
        self.monotonicSeconds = monotonicSeconds
        rings = Locked(
            Rings(
                proven: try RefusalRing(RefusalStore.provenPath(in: folder), bytes: bytes / 2),
                unproven: try RefusalRing(RefusalStore.unprovenPath(in: folder), bytes: bytes / 2)))
    }

    /// Opens the rings of that data folder for reading only, while a server may write to them. Nil if there
    /// are none.
    package init?(reading folder: String) throws(OperationalError) {
        let found = Rings(
            proven: try RefusalRing(reading: RefusalStore.provenPath(in: folder)),
            unproven: try RefusalRing(reading: RefusalStore.unprovenPath(in: folder)))
        guard !found.all.isEmpty else { return nil }
        monotonicSeconds = EventLoop.monotonicSeconds
        rings = Locked(found)
    }

    private static func provenPath(in folder: String) -> String { "\(folder)/refusals-proven" }
    private static func unprovenPath(in folder: String) -> String { "\(folder)/refusals-unproven" }

    /// Starts the thread that writes.
    func start() throws(OperationalError) {
        let threads = try WorkerThreads(purpose: "to keep refusals on") { [self] in write() }
        writer.with { $0 = threads }
    }

    /// Writes the waiting records, and ends the thread.
    func stop() {
        waiting.with { $0.isOver = true }
        waiting.wakeAll()
        writer.with { $0.take() }?.join()
    }

    /// Refusals that were not kept, because the disk was too slow or full, another process had the files, or
    /// the caller had used its share.
    var losses: UInt64 { lost.with { $0 } }

    /// `party` is nil for a caller that has proved nothing.
    func add(_ refusal: RecentRefusal, of party: VerifiedParty?) {
        let now = monotonicSeconds()
        let isTaken = waiting.with { state in
            guard state.records.count < RefusalStore.mostWaiting else { return false }
            state.records.append(Waiting(refusal: refusal, party: party, at: now))
            return true
        }
        if isTaken { waiting.wakeAll() } else { lost.with { $0 += 1 } }
    }

    private func write() {
        while true {
            let (records, isOver) = waiting.wait { (state) -> ([Waiting], Bool)? in
                guard !state.records.isEmpty || state.isOver else { return nil }
                defer { state.records = [] }
                return (state.records, state.isOver)
            }
            for record in records {
                if !rings.with({ $0.add(record) }) { lost.with { $0 += 1 } }
            }
            if isOver { return }
        }
    }

    // MARK: Reading

    /// The refusal of that event, found by the index.
    package func refusal(of event: String) -> RecentRefusal? {
        guard let id = RecentRefusal.id(of: event) else { return nil }
        return rings.with { rings in
            rings.all.lazy.compactMap { $0.record(of: id) }.first.flatMap(RecentRefusal.init(encoded:))
        }
    }

    /// The newest refusals that `isWanted` accepts, newest first: at most `most`. `isWanted` is asked about
    /// each of the last ``mostRead`` of each ring.
    func latest(_ most: Int, where isWanted: (RecentRefusal) -> Bool) -> [RecentRefusal] {
        let found = rings.with { rings in
            rings.all.flatMap { ring -> [RecentRefusal] in
                var found: [RecentRefusal] = []
                ring.walk(atMost: RefusalStore.mostRead) { record in
                    if let refusal = RecentRefusal(encoded: record), isWanted(refusal), found.count < most {
                        found.append(refusal)
                    }
                    return true
                }
                return found
            }
        }
        return Array(found.sorted { $0.time > $1.time }.prefix(most))
    }

    /// The time of the oldest refusal in each ring, in whole Unix seconds; nil for an empty ring.
    package var oldest: (proven: Int64?, unproven: Int64?) {
        rings.with { ($0.proven?.oldest, $0.unproven?.oldest) }
    }
}

extension RecentRefusal {
    /// The event's id as two numbers; nil for any other text.
    static func id(of event: String) -> (UInt64, UInt64)? {
        let digits = event.utf8.filter { $0 != UInt8(ascii: "-") }
        guard digits.count == 32, event.utf8.count == 36 else { return nil }
        let text = String(decoding: digits, as: UTF8.self)
        guard let high = UInt64(text.prefix(16), radix: 16), let low = UInt64(text.suffix(16), radix: 16)
        else { return nil }
        return (high, low)
    }

    fileprivate var id: (UInt64, UInt64) { RecentRefusal.id(of: event) ?? (0, 0) }

    /// The line of the log, a newline, and the rest as JSON; without the search if that makes the record too
    /// long.
    fileprivate var encoded: [UInt8] {
        let whole = encoded(with: search)
        return whole.count <= RefusalRing.longestRecord ? whole : encoded(with: .notMade)
    }

    private func encoded(with search: Search) -> [UInt8] {
        var members: [(name: String, value: JSONValue)] = [
            ("event", .string(event)), ("code", .string(code)),
        ]
        if let named {
            members += [("app", .string(named.app)), ("release", .string(named.release))]
        }
        if case .made(let cause, let notes) = search {
            members.append(("notes", .strings(notes)))
            if let cause {
                members.append(
                    (
                        "cause",
                        [
                            "code": .string(cause.code), "sentence": .string(cause.sentence),
                            "remedy": .string(cause.remedy),
                        ]
                    ))
            }
        }
        let text = line.last == 0x0A ? line.dropLast() : line[...]
        return text + [0x0A] + JSONValue.object(members).bytes
    }

    fileprivate init?(encoded record: RefusalRing.Record) {
        guard let end = record.bytes.firstIndex(of: 0x0A),
            let document = try? JSONReader.read(Array(record.bytes[(end + 1)...])),
            let event = document.root["event"]?.string, let code = document.root["code"]?.string
        else { return nil }
        let root = document.root
        var named: (app: String, release: String)?
        if let app = root["app"]?.string, let release = root["release"]?.string { named = (app, release) }
        var search = Search.notMade
        if let notes = root["notes"]?.elements {
            let cause = root["cause"].map { cause in
                Cause(
                    code: cause["code"]?.string ?? "", sentence: cause["sentence"]?.string ?? "",
                    remedy: cause["remedy"]?.string ?? "")
            }
            search = .made(cause, notes: notes.compactMap(\.string))
        }
        self.init(
            event: event, code: code, line: Array(record.bytes[..<end]), named: named, search: search,
            time: record.time)
    }
}
