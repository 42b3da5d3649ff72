import CountersignAuthority
import CountersignSeal
import CountersignWire

/// A time during which the shared replay guard has lost no entry, as far as is known. The durable store has
/// the current one, for all nodes; Redis has its token in each hash slot that has entries.
///
/// An epoch ends when entries may have been lost. The next one has a higher floor: signatures made at or
/// before it are refused, because replays of them cannot be told.
package struct ReplayEpoch: Sendable, Equatable {
    package var number: Int64
    /// 32 random hexadecimal digits, so that no marker of another epoch, of a restored store or of another
    /// deployment matches.
    package var token: String
    /// The data set to which the epoch belongs.
    package var identity: ReplayDataSet
    /// The random identifier of the guard's server, which the server also stores. A node that reaches another
    /// server has another guard. Nil for a guard in the store itself.
    package var serverID: String?
    /// How many keys its server had dropped to make room when the epoch began.
    package var evicted: Int64
    /// Whole Unix seconds; 0 for no bound.
    package var floor: Int64
    /// What every node's policies need.
    package var need: ReplayRetention
    /// Entries of signatures that were made up to `narrowUntil` may be kept for `narrowRetention` only: the
    /// retention was widened then.
    package var narrowUntil: Int64 = 0
    package var narrowRetention: Int64 = 0
    /// When requests were admitted, and what a clock that was set back makes refused.
    package var periods = ReplayPeriods()

    /// Seconds by which the clocks of a node and of Redis may differ.
    package static let clockTolerance: Int64 = 5
    /// Seconds for which a node goes on without having read the store's epoch.
    package static let lease: Int64 = 5
    /// What a node may have admitted, beyond what the clock of the node that raises the floor allows: two
    /// clocks' differences, and a node that has not seen the new epoch yet.
    static let margin = 2 * clockTolerance + lease

    package init(
        number: Int64, identity: ReplayDataSet, on serverID: String? = nil, evicted: Int64 = 0, floor: Int64,
        need: ReplayRetention, random: some RandomSource = SystemRandom()
    ) {
        self.number = number
        self.identity = identity
        self.serverID = serverID
        self.evicted = evicted
        self.floor = floor
        self.need = need
        token = Hex.encode(random.bytes(16).span)
    }

    /// The epoch that follows a loss which was found at `now`. A floor never falls.
    package func next(
        for identity: ReplayDataSet, on serverID: String? = nil, evicted: Int64 = 0, need: ReplayRetention,
        now: Int64
    ) -> ReplayEpoch {
        // The largest time that a record holds: sums do not overflow.
        let now = min(max(now, 0), Int64.max / 8)
        let window = max(self.need.window, need.window)
        let settled = periods.settled(
            at: now, reach: max(self.need.seconds, need.seconds) + ReplayEpoch.margin)
        let raised = ReplayEpoch.floor(at: settled.floored, window: window)
        var next = ReplayEpoch(
            number: number &+ 1, identity: identity, on: serverID, evicted: evicted,
            floor: max(floor, raised), need: need)
        next.periods = settled.periods
        return next
    }

    /// Above everything that any node may have admitted until `now`.
    package static func floor(at now: Int64, window: Int64) -> Int64 {
        // The largest time that a record holds.
        min(max(now, 0), Int64.max / 8) + window + margin
    }

    /// The same epoch for wider needs, from `now` on.
    package func widened(to wider: ReplayRetention, now: Int64) -> ReplayEpoch {
        var epoch = self
        epoch.need = need.union(wider)
        guard epoch.need.seconds > need.seconds else { return epoch }
        let isNarrowStill = narrowRetention > 0 && narrowUntil + need.seconds > now
        epoch.narrowRetention = isNarrowStill ? min(narrowRetention, need.seconds) : need.seconds
        epoch.narrowUntil = max(narrowUntil, ReplayEpoch.floor(at: now, window: epoch.need.window))
        return epoch
    }

    /// The same epoch with a floor, after a loss, for requests that were admitted under `need`, too.
    package func covering(_ need: ReplayRetention) -> ReplayEpoch {
        var epoch = self
        epoch.need = self.need.union(need)
        return epoch
    }

    /// The same epoch with a period of admissions around `now`.
    package func extended(at now: Int64) -> ReplayEpoch {
        var epoch = self
        epoch.periods = periods.extended(at: now)
        return epoch
    }

    /// The time up to which signatures are refused, for a request that is judged at `now`.
    package func bound(for created: Int64, now: Int64) -> Int64? {
        if created <= floor { return floor }
        guard narrowRetention > 0, created <= narrowUntil,
            now - created >= narrowRetention - ReplayEpoch.slack
        else { return nil }
        return min(narrowUntil, now - narrowRetention + ReplayEpoch.slack)
    }

    /// Seconds before the end of an entry's retention at which it counts no longer.
    static let slack: Int64 = 2 * clockTolerance
}

/// For how long entries must be kept.
package struct ReplayRetention: Sendable, Equatable {
    /// The widest window of all policies, in seconds either side of now.
    package var window: Int64
    /// The longest lifetime of a presigned URL, in seconds after its creation.
    package var lifetime: Int64

    package init(window: Int, lifetime: Int) {
        self.init(window: Int64(window), lifetime: Int64(lifetime))
    }

    fileprivate init(window: Int64, lifetime: Int64) {
        self.window = min(max(window, 0), ReplayRetention.most)
        self.lifetime = min(max(lifetime, 0), ReplayRetention.most)
    }

    /// Seconds from the creation, beyond freshness by more than a slow request and clocks take.
    package var seconds: Int64 { max(window, lifetime) + 60 }

    func union(_ other: ReplayRetention) -> ReplayRetention {
        ReplayRetention(window: max(window, other.window), lifetime: max(lifetime, other.lifetime))
    }

    fileprivate static let most: Int64 = 366 * 86_400
}

/// The text form in the store: decimal and hexadecimal fields, separated by spaces.
extension ReplayEpoch {
    package var text: String {
        let numbers = [evicted, floor, need.window, need.lifetime, narrowUntil, narrowRetention]
        return "1 \(number) \(token) \(serverID ?? ".") \(identity.server) \(identity.history) "
            + (numbers.map(String.init) + periods.fields).joined(separator: " ")
    }

    /// Nil for a text of another form: it was altered, or written by a later version.
    package init?(_ text: String) {
        let fields = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 14, fields[0] == "1", let number = Int64(fields[1]), number > 0,
            Hex.decode(fields[2])?.count == 16, fields[3] == "." || ReplayDataSet.isID(fields[3]),
            ReplayDataSet.isID(fields[4]), ReplayDataSet.isID(fields[5])
        else { return nil }
        let numbers = fields[6..<12].compactMap { Int64($0) }
        // Sums of these do not overflow.
        guard let periods = ReplayPeriods(Array(fields[12...])), numbers.count == 6,
            numbers.allSatisfy({ (0...(Int64.max / 4)).contains($0) }),
            numbers[2...3].allSatisfy({ $0 <= ReplayRetention.most }), numbers[5] <= 2 * ReplayRetention.most
        else { return nil }
        self.number = number
        token = fields[2]
        serverID = fields[3] == "." ? nil : fields[3]
        identity = ReplayDataSet(server: fields[4], history: fields[5])
        (evicted, floor) = (numbers[0], numbers[1])
        need = ReplayRetention(window: numbers[2], lifetime: numbers[3])
        (narrowUntil, narrowRetention) = (numbers[4], numbers[5])
        self.periods = periods
    }
}
