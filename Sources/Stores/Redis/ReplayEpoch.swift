import CountersignSeal
import CountersignWire

/// A time during which Redis has lost no entry, as far as is known. The durable store has the current one,
/// for all nodes; Redis has its token in each hash slot that has entries.
///
/// An epoch ends when entries may have been lost. The next one has a higher floor: signatures made at or
/// before it are refused, because replays of them cannot be told.
package struct ReplayEpoch: Sendable, Equatable {
    package var number: Int64
    /// 32 random hexadecimal digits, so that no marker of another epoch, of a restored store or of another
    /// deployment matches.
    package var token: String
    /// The data set to which the epoch belongs.
    package var identity: RedisIdentity
    /// Whole Unix seconds; 0 for no bound.
    package var floor: Int64
    /// Seconds from a signature's creation for which an entry is kept.
    package var retention: Int64
    /// Entries of signatures that were made up to `narrowUntil` may be kept for `narrowRetention` only: the
    /// retention was widened then.
    package var narrowUntil: Int64 = 0
    package var narrowRetention: Int64 = 0

    /// Seconds by which the clocks of a node and of Redis may differ.
    package static let clockTolerance: Int64 = 5
    /// Seconds for which a node goes on without having read the store's epoch.
    package static let lease: Int64 = 5
    /// What a node may have admitted, beyond what the clock of the node that raises the floor allows: two
    /// clocks' differences, and a node that has not seen the new epoch yet.
    static let margin = 2 * clockTolerance + lease

    package init(
        number: Int64, identity: RedisIdentity, floor: Int64, retention: Int64,
        random: some RandomSource = SystemRandom()
    ) {
        self.number = number
        self.identity = identity
        self.floor = floor
        self.retention = retention
        token = Hex.encode(random.bytes(16).span)
    }

    /// The epoch that follows a loss which was found at `now`. A floor never falls.
    package func next(
        for identity: RedisIdentity, window: Int64, retention: Int64, now: Int64
    ) -> ReplayEpoch {
        ReplayEpoch(
            number: number &+ 1, identity: identity,
            floor: max(floor, ReplayEpoch.floor(at: now, window: window)), retention: retention)
    }

    /// Above everything that any node may have admitted until `now`.
    package static func floor(at now: Int64, window: Int64) -> Int64 {
        let (sum, overflow) = now.addingReportingOverflow(window + margin)
        return overflow ? .max : sum
    }

    /// The same epoch with a longer retention, from `now` on. `window` is the wider of the windows before and
    /// after.
    package func widened(toRetention wider: Int64, window: Int64, now: Int64) -> ReplayEpoch {
        var epoch = self
        let isNarrowStill = narrowUntil + retention > now
        epoch.narrowRetention = isNarrowStill && narrowRetention > 0 ? min(narrowRetention, retention) : retention
        epoch.narrowUntil = max(narrowUntil, ReplayEpoch.floor(at: now, window: window))
        epoch.retention = wider
        return epoch
    }

    /// The time up to which signatures are refused, for a request that is judged at `now`.
    package func bound(for created: Int64, now: Int64) -> Int64? {
        if created <= floor { return floor }
        guard narrowRetention > 0, created <= narrowUntil, now - created >= narrowRetention - ReplayEpoch.slack
        else { return nil }
        return min(narrowUntil, now - narrowRetention + ReplayEpoch.slack)
    }

    /// Seconds before the end of an entry's retention at which it counts no longer.
    static let slack: Int64 = 2 * clockTolerance
}

/// The text form in the store: decimal and hexadecimal fields, separated by spaces.
extension ReplayEpoch {
    package var text: String {
        "1 \(number) \(token) \(identity.run) \(identity.replication) \(floor) \(retention) \(narrowUntil) "
            + "\(narrowRetention)"
    }

    /// Nil for a text of another form: it was altered, or written by a later version.
    package init?(_ text: String) {
        let fields = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let ends = 0...(Int64(1) << 40)
        guard fields.count == 9, fields[0] == "1", let number = Int64(fields[1]), number > 0,
            Hex.decode(fields[2])?.count == 16, RedisIdentity.isID(fields[3]), RedisIdentity.isID(fields[4]),
            let floor = Int64(fields[5]), let retention = Int64(fields[6]), let until = Int64(fields[7]),
            let narrow = Int64(fields[8]), floor >= 0, (0...Int64(UInt32.max)).contains(retention), ends.contains(until),
            ends.contains(narrow)
        else { return nil }
        self.number = number
        token = fields[2]
        identity = RedisIdentity(run: fields[3], replication: fields[4])
        self.floor = floor
        self.retention = retention
        (narrowUntil, narrowRetention) = (until, narrow)
    }
}
