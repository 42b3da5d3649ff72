import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import Synchronization

/// What one loop has counted of one release, by outcome, since the process began.
///
/// Safe to share: its loop alone writes, whoever reads sees each number whole. With a single writer, counting is a load
/// and a store; no other loop waits for the cache line.
final class MeterCells: @unchecked Sendable {
    let app: String
    let release: String
    let scheme: String
    private let cells: UnsafeMutablePointer<Atomic<UInt64>>

    /// `release` nil for the requests that name none; `app` nil for those of which nobody knows whose they
    /// are.
    init(of release: ReleaseKey?, app: String? = nil) {
        self.app = release?.app ?? app ?? ""
        self.release = release?.id.description ?? ""
        scheme = release?.scheme.rawValue ?? ""
        cells = .allocate(capacity: MeterOutcome.all.count)
        for index in MeterOutcome.all.indices { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: MeterOutcome.all.count)
        cells.deallocate()
    }

    /// On the loop that these belong to.
    func count(_ outcome: MeterOutcome) {
        let cell = cells + MeterCells.place(of: outcome)
        cell.pointee.store(cell.pointee.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }

    /// Those that are not zero, added to `totals`.
    func add(to totals: inout [MeterEntry.Subject: UInt64]) {
        for (index, outcome) in MeterOutcome.all.enumerated() {
            let count = cells[index].load(ordering: .relaxed)
            guard count > 0 else { continue }
            totals[MeterEntry.Subject(app: app, release: release, scheme: scheme, outcome: outcome), default: 0] +=
                count
        }
    }

    private static func place(of outcome: MeterOutcome) -> Int {
        switch outcome {
        case .accepted: 0
        case .acceptedUnderNextKey: 1
        case .acceptedByTicket: 2
        case .open: 3
        case .refused(let code): 4 + (codes[code] ?? 0)
        case .observed(let code): 4 + codes.count + (codes[code] ?? 0)
        }
    }

    /// In which order ``MeterOutcome/all`` has the codes.
    private static let codes = Dictionary(
        uniqueKeysWithValues: Refusal.Code.allCases.enumerated().map { ($0.element, $0.offset) })
}
