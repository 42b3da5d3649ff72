import CountersignAuthority
import CountersignLab
import CountersignWire
import Synchronization

/// A line on a terminal that says how far a run of the lab is, and what is at work; nothing where nobody looks.
final class LabProgressLine: Sendable {
    private let console: Console
    private let shown = Atomic<UInt64>(0)

    init(_ console: Console) { self.console = console }

    func show(_ progress: LabProgress) {
        let now = SystemMonotonicClock().nanoseconds
        let last = shown.load(ordering: .relaxed)
        // Ten times a second, by whichever thread comes first.
        guard console.isWatched, now &- last > 100_000_000,
            shown.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
        else { return }
        console.replaceLine(LabProgressLine.text(progress))
    }

    func end() { if console.isWatched { console.replaceLine("") } }

    static func text(_ progress: LabProgress) -> String {
        let (done, total) = (progress.done, max(progress.total, 1))
        let share = min(done * 20 / total, 20)
        let bar = String(repeating: "#", count: share) + String(repeating: ".", count: 20 - share)
        let work = progress.attack.map { "\(progress.row): \($0)" } ?? "\(progress.row): setting the stage"
        return "[\(bar)] \(done) of \(progress.total)  \(work)"
    }
}
