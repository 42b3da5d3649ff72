import CountersignGate
import CountersignSchemes
import CountersignWire

/// A session with its key made ready, for the tokens that are in use: what a request of theirs is judged by costs a look-up
/// and allocates nothing. Bounded: sets of four, in which the newest takes the place of the oldest.
struct HotSessions {
    final class Entry: Sendable {
        let token: SessionToken
        let session: Session
        /// Nil for bearers, who sign with their release's.
        let key: SigningKey?

        init(_ token: SessionToken, _ session: Session, _ key: SigningKey?) {
            self.token = token
            self.session = session
            self.key = key
        }
    }

    private static let sets = 128
    private static let ways = 4

    private var entries: [Entry?] = Array(repeating: nil, count: HotSessions.sets * HotSessions.ways)
    private var turn = 0

    func find(_ token: SessionToken) -> Entry? {
        for place in HotSessions.places(of: token.id) {
            if let entry = entries[place], entry.token == token { return entry }
        }
        return nil
    }

    mutating func put(_ entry: Entry) {
        let places = HotSessions.places(of: entry.token.id)
        let free = places.first { entries[$0] == nil || entries[$0]?.token == entry.token }
        entries[free ?? places.lowerBound + turn] = entry
        turn = (turn + 1) % HotSessions.ways
    }

    /// In all epochs.
    mutating func remove(_ id: SessionID) {
        for place in HotSessions.places(of: id) where entries[place]?.token.id == id { entries[place] = nil }
    }

    mutating func removeAll() { for place in entries.indices { entries[place] = nil } }

    private static func places(of id: SessionID) -> Range<Int> {
        let set = Int(truncatingIfNeeded: id.hash >> 40) & (sets - 1)
        return set * ways..<(set + 1) * ways
    }
}
