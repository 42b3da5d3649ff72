import CountersignSchemes
import Glibc

/// How much an explanation may cost: it runs where requests are served, and whoever makes mistakes on purpose must not
/// be able to buy more than this with one.
package struct Budget {
    /// What whoever asks will spend.
    package enum Time: Sendable, Equatable {
        /// As long as the trials take: for a person with one request.
        case untilDone
        /// That many nanoseconds of the thread's own time, and the hypothesis that is being made then. Where requests
        /// are served, others wait meanwhile.
        case atMost(Int64)
    }

    /// Hypotheses. Somewhat more than the single mistakes of one request come to; the rest is for pairs.
    private var trials = 320
    /// Bytes of strings to sign: some 10 ms of hashing.
    private var bytes = 4 << 20

    /// Requests of one mistake that a second one is tried on.
    static let kept = 2
    /// Bodies beyond this are not read as JSON or forms, nor written anew.
    static let body = 64 << 10
    /// What a compressed body may become: as much as the gateway holds.
    static let inflated = 1 << 20

    /// In nanoseconds of the thread's own time; nil where there is none.
    private let deadline: Int64?

    init(_ time: Time) {
        switch time {
        case .untilDone: deadline = nil
        case .atMost(let nanoseconds): deadline = Budget.threadTime + nanoseconds
        }
    }

    /// To spell a request takes time, too, and to make one up: both count, whether or not anything is then tried.
    var isSpent: Bool { trials <= 0 || bytes <= 0 || deadline.map { Budget.threadTime > $0 } ?? false }

    /// Verifying under a key pair takes as long as hashing some kilobytes does.
    mutating func spend(on size: Int, _ key: SigningKey? = nil) {
        trials -= key?.publicKey == nil ? 1 : 4
        bytes -= size
    }

    private static var threadTime: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
