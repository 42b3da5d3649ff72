import CountersignWire

/// A streamed body or a long answer on its way: for as long as it lasts, the client's speed decides how long
/// the upstream connection is held. Confined to its loop.
final class ClientTransfer {
    enum Direction { case upload, download }

    /// Bytes a second below which a transfer ends for others that hold less. A body that comes more slowly
    /// lives on the seconds that it was given at the start; see ``BodyReader``.
    private static let slow = 32 << 10
    /// Bytes a second below which it ends for others whosever it is.
    private static let least = 4 << 10

    let party: UpstreamParty
    private let direction: Direction
    private unowned let relay: Relay
    private let upstream: Stream
    /// Bytes a second, averaged over about four. The first seconds count as just fast enough.
    private(set) var rate = ClientTransfer.slow
    private var moved: Int
    private(set) var isEnding = false
    /// Where it stands in its pool's list.
    var place = 0

    init(_ direction: Direction, of relay: Relay, over upstream: Stream) {
        self.direction = direction
        self.relay = relay
        self.upstream = upstream
        party = relay.party
        moved = ClientTransfer.moved(direction, of: relay)
    }

    deinit { if isEnding { party.countEnding(-1) } }

    var isSlow: Bool { rate < ClientTransfer.slow }
    var hardlyMoves: Bool { !isEnding && rate < ClientTransfer.least }

    /// Once a second. A second in which the client is not waited for takes nothing off the rate.
    func measure() {
        let total = ClientTransfer.moved(direction, of: relay)
        let gained = total - moved
        moved = total
        guard gained > rate || isAwaitingClient else { return }
        rate = (rate * 3 + max(0, gained)) / 4
    }

    /// Gives the upstream connection up: a body is refused, an answer is cut.
    func end() {
        guard !isEnding else { return }
        isEnding = true
        party.countEnding(1)
        switch direction {
        case .upload: relay.endUpload(over: upstream)
        case .download:
            relay.pool.loop.counters?.add(.cutSlowReader)
            relay.connection.stream.close()
        }
    }

    private var isAwaitingClient: Bool {
        let client = relay.connection.stream
        return direction == .upload ? client.awaitsInput : client.awaitsOutput
    }

    private static func moved(_ direction: Direction, of relay: Relay) -> Int {
        switch direction {
        case .upload: relay.received
        case .download: relay.connection.answeredBytes - relay.connection.stream.unsentBytes
        }
    }
}
