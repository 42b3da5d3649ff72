/// The connections of a loop by what they have proved, to find the one that gives way without a look at all
/// of them.
///
/// Confined to the loop. A change of standing moves a connection from one list to another; a request that
/// proves what the last one did changes nothing.
struct ConnectionRoster {
    private(set) var unproven = UnprovenQueue()
    private var releases = ProvenList()
    private var sessions = ProvenList()

    /// Connections of trusted proxies carry many clients, and count as having proved a release.
    mutating func insert(_ connection: Connection, as standing: ConnectionStanding, now: Int64) {
        connection.listedStanding = connection.usage.isExempt ? .release : standing
        switch connection.listedStanding {
        case .unproven: unproven.append(connection, of: connection.usage.source.address, now: now)
        case .release: releases.append(connection)
        case .session: sessions.append(connection)
        }
    }

    mutating func remove(_ connection: Connection) {
        switch connection.listedStanding {
        case .unproven: unproven.remove(connection)
        case .release: releases.remove(connection)
        case .session: sessions.remove(connection)
        }
    }

    /// An idle connection of just that standing, idle since `latest` or longer: of a bounded number that are
    /// looked at, one of the party with most connections, the longest idle.
    mutating func idle(_ standing: ConnectionStanding, since latest: Int64) -> Connection? {
        switch standing {
        case .unproven: nil
        case .release: releases.longestIdle(since: latest)
        case .session: sessions.longestIdle(since: latest)
        }
    }
}

/// Connections in no order, each of which knows its place.
private struct ProvenList {
    /// Connections that one search looks at.
    private static let sample = 64

    private var members: [Connection] = []
    /// Where the next search begins.
    private var cursor = 0

    mutating func append(_ connection: Connection) {
        connection.listedIndex = members.count
        members.append(connection)
    }

    mutating func remove(_ connection: Connection) {
        let last = members.removeLast()
        guard last !== connection else { return }
        members[connection.listedIndex] = last
        last.listedIndex = connection.listedIndex
    }

    mutating func longestIdle(since latest: Int64) -> Connection? {
        var found: (connection: Connection, siblings: Int)?
        for _ in 0..<min(ProvenList.sample, members.count) {
            cursor = cursor + 1 < members.count ? cursor + 1 : 0
            let connection = members[cursor]
            guard connection.isIdle, connection.idleSince <= latest else { continue }
            let siblings = connection.usage.siblings
            let isFirst = found.map {
                (siblings, $0.connection.idleSince) > ($0.siblings, connection.idleSince)
            }
            if isFirst ?? true { found = (connection, siblings) }
        }
        return found?.connection
    }
}
