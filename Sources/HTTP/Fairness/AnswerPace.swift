/// Whether the other side takes an answer at the least rate that it must, averaged over a window.
///
/// Counts only while bytes wait to be taken. What has been taken is what was written less what the socket
/// still holds, so a large socket buffer does not look like a fast client. A stream whose source is silent
/// writes nothing and loses nothing.
struct AnswerPace {
    /// Bytes a second.
    private let rate: Int
    /// What the window is worth: more is never saved up.
    private let most: Int
    /// Bytes that the other side may still be behind.
    private var credit: Int
    private var written = 0
    /// What was taken, and when, at the last look of the present wait.
    private var taken = 0
    private var looked: Int64 = 0

    /// `window` in seconds.
    init(rate: Int, window: Int) {
        self.rate = rate
        most = rate * window
        credit = most
    }

    mutating func didWrite(_ count: Int) { written &+= count }

    /// The socket takes no more for now.
    mutating func beginsWait(unsent: Int, now: Int64) {
        // Several waits in one second are one: what was taken between them counts.
        guard looked != now else { return }
        if looked < now - 1 {
            (taken, looked) = (written &- unsent, now)
        }
    }

    /// Once a second while the wait lasts.
    mutating func isTooSlow(unsent: Int, now: Int64) -> Bool {
        guard looked < now else { return false }
        let nowTaken = written &- unsent
        credit = min(most, credit &+ (nowTaken &- taken) &- rate &* Int(clamping: now - looked))
        (taken, looked) = (nowTaken, now)
        return credit < 0
    }
}
