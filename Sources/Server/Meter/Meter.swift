import CountersignAuthority
import CountersignGate
import CountersignWire

/// How many requests each release has sent and what became of them, over all loops, since the process began.
///
/// Safe to share: `cells` is touched under `lock`, and only when a loop meets a release, a scrape asks, or it is written
/// down.
final class Meter: @unchecked Sendable {
    private let lock = ReadWriteLock()
    private var cells: [MeterCells] = []

    /// Cells for one loop to count in.
    func makeCells(of release: ReleaseKey?, app: String? = nil) -> MeterCells {
        let made = MeterCells(of: release, app: app)
        lock.write { cells.append(made) }
        return made
    }

    func totals() -> [MeterEntry.Subject: UInt64] {
        var totals: [MeterEntry.Subject: UInt64] = [:]
        lock.read { for cells in cells { cells.add(to: &totals) } }
        return totals
    }
}
