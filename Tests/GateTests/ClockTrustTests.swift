import CountersignGate
import CountersignWire
import ScriptedClock
import Testing

/// When a server trusts its clock. Times in seconds, by ``ScriptedClock``.
@Suite("Trusted time") struct ClockTrustTests {
    private static let start: Int64 = 1_800_000_000
    private static let days91: Int64 = 91 * 86_400

    /// A server that began ten minutes ago.
    private static func server(_ beginning: ClockTrust.Beginning = .init(), wall: Int64 = start)
        -> (script: ScriptedClock, clock: TrustedClock)
    {
        let script = ScriptedClock(wall: wall)
        let clock = TrustedClock(reading: script.clocks)
        clock.begin(beginning)
        return (script, clock)
    }

    private static func pass(_ seconds: Int64, of script: ScriptedClock, seenBy clock: TrustedClock) {
        for _ in 0..<seconds {
            script.advance(1)
            _ = clock.trust
        }
    }

    @Test("after a start the clock is trusted, and sweeps wait ten minutes")
    func start() {
        let (script, clock) = Self.server()
        #expect(clock.trust.isTrusted && clock.sweepTime == nil && clock.trustedTime?.seconds == Self.start)
        Self.pass(599, of: script, seenBy: clock)
        #expect(clock.sweepTime == nil)
        Self.pass(1, of: script, seenBy: clock)
        #expect(clock.sweepTime?.seconds == Self.start + 600)
    }

    @Test("what is kept cannot be read as a time that overflows")
    func kept() {
        var beginning = ClockTrust.Beginning()
        beginning.last = ClockTrust(
            mark: .init(wall: Self.start * 1_000, uptime: 1_000_000), agreesSince: 1 << 53, isTrusted: true,
            lastTrusted: Self.start * 1_000)
        beginning.isSameBoot = true
        let (_, clock) = Self.server(beginning)
        #expect(clock.trust.isTrusted && clock.sweepTime == nil, "a time to come is no past")
    }

    @Test(
        "a jump ends the trust at once; ten minutes of agreement restore it",
        arguments: [days91, 6, -6, -3_600])
    func jump(by step: Int64) {
        let (script, clock) = Self.server()
        Self.pass(600, of: script, seenBy: clock)
        script.jump(step)
        #expect(clock.sweepTime == nil && clock.trustedTime == nil && !clock.trust.isTrusted)
        #expect(clock.trust.doubt == .jumped(step * 1_000))
        #expect(clock.estimate == Self.start + 600)
        #expect(clock.hasCome(Self.start + 600) && !clock.hasCome(Self.start + 601))
        Self.pass(9, of: script, seenBy: clock)
        script.jump(-step)
        #expect(clock.trust.doubt == nil && !clock.trust.isTrusted)
        #expect(!clock.hasCome(Self.start + 605), "what came since is not certain yet")
        Self.pass(599, of: script, seenBy: clock)
        #expect(!clock.trust.isTrusted && clock.sweepTime == nil)
        Self.pass(1, of: script, seenBy: clock)
        #expect(clock.trust.isTrusted && clock.sweepTime?.seconds == Self.start + 1_209)
        #expect(clock.hasCome(Self.start + 1_209))
    }

    @Test("a jump that persists is never trusted until somebody confirms it; sweeps wait again")
    func persistence() {
        let (script, clock) = Self.server()
        script.jump(Self.days91)
        Self.pass(100_000, of: script, seenBy: clock)
        #expect(!clock.trust.isTrusted && !clock.isPresent(Self.start + Self.days91 + 100_000))
        clock.confirm()
        #expect(clock.trust.isTrusted && clock.sweepTime == nil)
        #expect(clock.isPresent(Self.start + Self.days91 + 100_000))
        Self.pass(600, of: script, seenBy: clock)
        #expect(clock.sweepTime?.seconds == Self.start + Self.days91 + 100_600)
    }

    @Test("small steps add up to what the mark follows, and no further")
    func drift() {
        let (script, clock) = Self.server()
        // A second each day is what an undisciplined clock loses; a second each minute is not.
        for _ in 0..<10 {
            Self.pass(86_400, of: script, seenBy: clock)
            script.jump(1)
        }
        #expect(clock.trust.isTrusted)
        for _ in 0..<10 {
            Self.pass(60, of: script, seenBy: clock)
            script.jump(1)
        }
        #expect(!clock.trust.isTrusted)
    }

    @Test("a clock that was wrong for a moment decides nothing")
    func momentary() {
        let (script, clock) = Self.server()
        let end = Self.start + 1_000
        func refusal(_ code: Refusal.Code, decidedAt moment: Int64) -> Refusal {
            clock.confirmed(Refusal(code, detail: "d", decidedAt: moment))
        }
        // Read while the clock was ahead, and confirmed when it was right again.
        #expect(refusal(.sessionEnded, decidedAt: end).code == .unavailable)
        #expect(refusal(.stale, decidedAt: Self.start + Self.days91).code == .unavailable)
        #expect(refusal(.updateRequired, decidedAt: end).retryAfter == 60)
        // What is certain stands, and so does what no clock decides.
        #expect(refusal(.sessionEnded, decidedAt: Self.start) == Refusal(.sessionEnded, detail: "d"))
        #expect(refusal(.stale, decidedAt: Self.start).code == .stale)
        #expect(clock.confirmed(Refusal(.sessionEnded)).code == .sessionEnded)
        script.jump(-200)
        #expect(refusal(.stale, decidedAt: Self.start - 200).code == .unavailable, "it teaches a wrong time")
        script.jump(200)
        Self.pass(2_000, of: script, seenBy: clock)
        #expect(refusal(.sessionEnded, decidedAt: end).code == .sessionEnded)
    }

    @Test("a start in the same boot goes on from what was kept: a jump while nothing ran is one")
    func sameBoot() {
        let (script, clock) = Self.server()
        Self.pass(600, of: script, seenBy: clock)
        var beginning = ClockTrust.Beginning()
        (beginning.last, beginning.isSameBoot) = (clock.trust, true)
        script.advance(3_600)
        let next = TrustedClock(reading: script.clocks)
        next.begin(beginning)
        #expect(next.trust.isTrusted && next.sweepTime != nil)
        script.jump(Self.days91)
        let jumped = TrustedClock(reading: script.clocks)
        jumped.begin(beginning)
        #expect(jumped.trust.doubt == .jumped(Self.days91 * 1_000) && jumped.trustedTime == nil)
        #expect(jumped.hasCome(Self.start + 600) && !jumped.hasCome(Self.start + 4_201))
    }

    @Test("after a reboot: later than the newest record, and before the certificate's end")
    func longStop() {
        var beginning = ClockTrust.Beginning()
        beginning.newestRecord = (Self.start + 50) * 1_000
        beginning.certificateEnd = (Self.start + 1_000) * 1_000
        let (behind, early) = Self.server(beginning)
        #expect(early.trust.doubt == .behindRecord(50_000) && !early.trust.isTrusted)
        #expect(early.hasCome(Self.start + 50) && !early.hasCome(Self.start + 51))
        // It is set right: not trusted for ten minutes.
        behind.jump(60)
        Self.pass(599, of: behind, seenBy: early)
        #expect(early.trust.doubt == nil && !early.trust.isTrusted)
        Self.pass(2, of: behind, seenBy: early)
        #expect(early.trust.isTrusted)
        let (_, good) = Self.server(beginning, wall: Self.start + 60)
        #expect(good.trust.isTrusted && good.sweepTime == nil)
        let (_, late) = Self.server(beginning, wall: Self.start + Self.days91)
        #expect(late.trust.doubt == .pastCertificate((Self.days91 - 1_000) * 1_000))
        late.confirm()
        #expect(late.trust.isTrusted)
    }

    @Test("a server that stopped while its clock was doubted begins doubting")
    func doubtIsKept() {
        let (script, clock) = Self.server()
        Self.pass(600, of: script, seenBy: clock)
        script.jump(Self.days91)
        var beginning = ClockTrust.Beginning()
        beginning.last = clock.trust
        let next = TrustedClock(reading: script.clocks)
        next.begin(beginning)
        #expect(next.trust.doubt == .doubtedBefore && !next.hasCome(Self.start + Self.days91))
        Self.pass(1_200, of: script, seenBy: next)
        #expect(!next.trust.isTrusted, "no restart of the machine is a way around")
        // Of several nodes, the database's clock tells.
        beginning.needsStore = true
        let node = TrustedClock(reading: script.clocks)
        node.hear(storeTime: script.clocks().wall, at: script.clocks().uptime)
        node.begin(beginning)
        #expect(node.trust.doubt == nil && !node.trust.isTrusted)
        Self.pass(600, of: script, seenBy: node)
        #expect(node.trust.isTrusted)
        #expect(next.confirm() && next.trust.isTrusted)
    }

    @Test("beside a database: both clocks must agree, and the lesser counts")
    func nodes() {
        var beginning = ClockTrust.Beginning()
        beginning.needsStore = true
        let (script, clock) = Self.server(beginning)
        #expect(clock.trust.doubt == .storeNotHeard && clock.trustedTime == nil)
        func hear(_ wall: Int64) { clock.hear(storeTime: wall * 1_000, at: script.clocks().uptime) }
        hear(Self.start - 3)
        clock.begin(beginning)
        #expect(clock.trustedTime?.seconds == Self.start - 3)
        Self.pass(600, of: script, seenBy: clock)
        #expect(clock.sweepTime?.seconds == Self.start + 597)
        // This node's clock alone, then the database's alone, then both.
        script.jump(60)
        #expect(clock.trust.doubt == .differsFromStore(63_000) && clock.sweepTime == nil)
        script.jump(-60)
        hear(Self.start + 600 + 60)
        #expect(clock.trust.doubt == .differsFromStore(-60_000))
        script.jump(60)
        #expect(clock.trust.doubt == .jumped(60_000))
        #expect(clock.estimate == Self.start + 600 && !clock.hasCome(Self.start + 601))
        #expect(clock.confirm() && clock.trust.isTrusted)
        script.jump(60)
        #expect(!clock.confirm() && !clock.trust.isTrusted, "it differs from the database's")
    }

    @Test("records are never later than the database's clock and the tolerance")
    func latestEstimate() {
        var beginning = ClockTrust.Beginning()
        beginning.needsStore = true
        // From the first reading on, without a mark.
        let script = ScriptedClock(wall: Self.start + Self.days91)
        let clock = TrustedClock(reading: script.clocks)
        clock.hear(storeTime: Self.start * 1_000, at: script.clocks().uptime)
        clock.begin(beginning)
        #expect(clock.estimate == Self.start)
        #expect(clock.contradiction == "the clock is \(Self.days91) s ahead of the database's")
        // With a mark, when both clocks of the machine are ahead.
        let (other, watched) = Self.server(beginning)
        watched.hear(storeTime: Self.start * 1_000, at: other.clocks().uptime)
        watched.begin(beginning)
        other.advance(100)
        watched.hear(storeTime: (Self.start + 40) * 1_000, at: other.clocks().uptime)
        #expect(watched.estimate == Self.start + 45)
        other.jump(-100)
        watched.hear(storeTime: Self.start * 1_000, at: other.clocks().uptime)
        #expect(watched.estimate == Self.start + 5)
    }

    @Test("another database server whose clock differs by less than the tolerance changes nothing")
    func failOver() {
        var beginning = ClockTrust.Beginning()
        beginning.needsStore = true
        let (script, clock) = Self.server(beginning)
        clock.hear(storeTime: script.clocks().wall - 3_000, at: script.clocks().uptime)
        clock.begin(beginning)
        Self.pass(600, of: script, seenBy: clock)
        clock.hear(storeTime: script.clocks().wall + 3_000, at: script.clocks().uptime)
        #expect(clock.trust.isTrusted && clock.sweepTime != nil)
    }

    @Test(
        "a machine that was restarted sets its clock by small steps, which do not add up",
        arguments: [20, -20, 60])
    func firstStep(of step: Int64) {
        let (script, clock) = Self.server()
        Self.pass(30, of: script, seenBy: clock)
        script.jump(step)
        #expect(clock.trust.isTrusted && clock.isPresent(Self.start + 30 + step))
        Self.pass(559, of: script, seenBy: clock)
        #expect(clock.sweepTime == nil)
        script.jump(131 - abs(step))
        #expect(clock.trust.doubt == .jumped((131 - abs(step)) * 1_000))
    }

    @Test("starts in the same boot refill no allowance of first steps")
    func firstStepsOfManyStarts() {
        let script = ScriptedClock(wall: Self.start)
        var beginning = ClockTrust.Beginning()
        func starts() -> ClockTrust {
            let clock = TrustedClock(reading: script.clocks)
            clock.begin(beginning)
            (beginning.last, beginning.isSameBoot) = (clock.trust, true)
            return clock.trust
        }
        #expect(starts().isTrusted)
        script.jump(120)
        #expect(starts().isTrusted, "the machine sets its clock")
        script.advance(400)
        #expect(starts().firstSteps == ClockTrust.FirstSteps(until: 1_600_000, left: 10_000))
        script.jump(120)
        #expect(starts().doubt == .jumped(120_000))
        script.jump(-120)
        #expect(starts().doubt == nil)
        script.jump(8)
        #expect(starts().doubt == .jumped(8_000), "a clock that was in doubt is not being synchronized")
    }

    @Test("the first steps end ten minutes after the first start, and not after the last")
    func endOfFirstSteps() {
        let script = ScriptedClock(wall: Self.start)
        var beginning = ClockTrust.Beginning()
        for _ in 0..<7 {
            let clock = TrustedClock(reading: script.clocks)
            clock.begin(beginning)
            (beginning.last, beginning.isSameBoot) = (clock.trust, true)
            script.advance(100)
        }
        script.jump(60)
        let clock = TrustedClock(reading: script.clocks)
        clock.begin(beginning)
        #expect(clock.trust.doubt == .jumped(60_000))
    }

    @Test("a node that starts with a wrong clock is trusted ten minutes after it agrees with the database")
    func lateNode() {
        var beginning = ClockTrust.Beginning()
        beginning.needsStore = true
        let (script, clock) = Self.server(beginning)
        clock.hear(storeTime: (Self.start + 3_600) * 1_000, at: script.clocks().uptime)
        clock.begin(beginning)
        #expect(!clock.trust.isTrusted)
        script.jump(3_600)
        Self.pass(599, of: script, seenBy: clock)
        #expect(!clock.trust.isTrusted)
        Self.pass(2, of: script, seenBy: clock)
        #expect(clock.trust.isTrusted && clock.sweepTime != nil)
    }
}
