import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

/// Counts the requests of one loop, and is confined to it. A request costs one look-up and no lock; only a release that
/// the loop has not met before has cells made for it. Nobody outside can make a release, so there are never more.
final class Tally: @unchecked Sendable {
    private let meter: Meter
    private var cells: [KeyID: MeterCells] = [:]
    /// Of requests that name no release and came to an app's host; there are no more apps than hosts that
    /// name one.
    private var apps: [String: MeterCells] = [:]
    private let unknown: MeterCells
    /// The release that was counted last. A loop mostly meets the same few, and a comparison of references is
    /// cheaper than a look-up by key id.
    private var latest: (release: ReleaseKey, cells: MeterCells)?

    init(_ meter: Meter) {
        self.meter = meter
        unknown = meter.makeCells(of: nil)
    }

    func accept(_ release: ReleaseKey, under edition: ReleaseKey.Edition) {
        cells(of: release).count(edition == .next ? .acceptedUnderNextKey : .accepted)
    }

    /// Of an upload that came with a ticket.
    func acceptTicket(of release: ReleaseKey) { cells(of: release).count(.acceptedByTicket) }

    /// `named` is what the request says it comes from, which a refused one has not proved.
    func refuse(_ code: Refusal.Code, named: ReleaseKey?) {
        let cells = named.map { self.cells(of: $0) } ?? unknown
        cells.count(.refused(code))
    }

    /// Of a request that went on although it proved nothing.
    func pass(_ passage: Passage) {
        let cells = passage.release.map { self.cells(of: $0) } ?? self.cells(of: passage.app)
        switch passage.cause {
        case .open: cells.count(.open)
        case .observed(let code): cells.count(.observed(code))
        }
    }

    private func cells(of app: String) -> MeterCells {
        if let cells = apps[app] { return cells }
        let made = meter.makeCells(of: nil, app: app)
        apps[app] = made
        return made
    }

    private func cells(of release: ReleaseKey) -> MeterCells {
        if let latest, latest.release === release { return latest.cells }
        let found = cells[release.id] ?? meter.makeCells(of: release)
        cells[release.id] = found
        latest = (release, found)
        return found
    }
}
