import CountersignAuthority
import CountersignWire
import Glibc
import Synchronization

/// A line on a terminal that says how far an import is, and how fast; nothing where nobody looks. Counts from many threads.
final class ImportProgress: Sendable {
    private let console: Console
    private let began = SystemMonotonicClock().nanoseconds
    private let bytes = Atomic(0)
    private let expected = Atomic(0)
    private let rows = Atomic(0)
    private let shown = Atomic<UInt64>(0)

    init(_ console: Console) { self.console = console }

    /// Of a file that has a size; a pipe has none.
    func expect(bytesOf file: Int32) {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
        expected.store(Int(status.st_size), ordering: .relaxed)
    }

    func read(_ count: Int) { bytes.add(count, ordering: .relaxed) }

    /// One row more.
    func wrapped() {
        rows.add(1, ordering: .relaxed)
        let now = SystemMonotonicClock().nanoseconds
        let last = shown.load(ordering: .relaxed)
        // Five times a second, by whichever thread comes first.
        guard console.isWatched, now &- last > 200_000_000,
            shown.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
        else { return }
        console.replaceLine(line)
    }

    /// Something else is said; the line gives way.
    func interrupt(_ say: () -> Void) {
        if console.isWatched { console.replaceLine("") }
        say()
    }

    func end() { if console.isWatched { console.replaceLine("") } }

    var seconds: Double { Double(SystemMonotonicClock().nanoseconds &- began) / 1e9 }

    static func text(_ seconds: Double) -> String { "\(Int(seconds)).\(Int(seconds * 10) % 10) s" }

    private var line: String {
        let count = rows.load(ordering: .relaxed)
        let rate = seconds > 0 ? Int(Double(count) / seconds) : 0
        let (done, all) = (bytes.load(ordering: .relaxed), expected.load(ordering: .relaxed))
        guard all > 0 else { return "\(count) rows, \(rate) a second" }
        let share = min(done * 20 / all, 20)
        let bar = String(repeating: "#", count: share) + String(repeating: ".", count: 20 - share)
        return "[\(bar)] \(min(done * 100 / all, 100)) % read, \(count) rows, \(rate) a second"
    }
}
