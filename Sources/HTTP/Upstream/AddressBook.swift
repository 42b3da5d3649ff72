/// The addresses of the upstream's name, and which of them failed lately. Shared by all loops; asked only when a
/// connection opens.
///
/// New connections go to the addresses in turn. One that failed is skipped, for a second at first and twice as long
/// after each further failure, up to a minute; then one connection tries it again. Where all addresses are skipped, the
/// one that failed longest ago is tried, so a backend with one address is always tried.
struct AddressBook {
    private struct Entry {
        var address: SocketAddress
        /// Failures since the last success.
        var failures = 0
        var failedAt = Int64.min
        var skippedUntil = Int64.min

        var pause: Int64 { min(1 << Int64(min(failures - 1, 6)), AddressBook.longestPause) }
    }

    private static let longestPause: Int64 = 60
    private var entries: [Entry] = []
    private var turn = 0

    /// The addresses that one connection may try, in order; empty where the name has none. `now` in seconds on the
    /// loops' clock.
    mutating func candidates(at now: Int64) -> [SocketAddress] {
        guard !entries.isEmpty else { return [] }
        turn = (turn + 1) % entries.count
        var chosen: [SocketAddress] = []
        for offset in entries.indices {
            let index = (turn + offset) % entries.count
            guard entries[index].skippedUntil <= now else { continue }
            chosen.append(entries[index].address)
            // Others skip it until the outcome of this trial is known.
            if entries[index].failures > 0 { entries[index].skippedUntil = now + entries[index].pause }
        }
        if chosen.isEmpty, let oldest = entries.indices.min(by: { entries[$0].failedAt < entries[$1].failedAt }) {
            chosen.append(entries[oldest].address)
        }
        return chosen
    }

    mutating func didConnect(to address: SocketAddress) {
        guard let index = entries.firstIndex(where: { $0.address == address }) else { return }
        entries[index].failures = 0
        entries[index].skippedUntil = .min
    }

    mutating func didFail(_ address: SocketAddress, at now: Int64) {
        guard let index = entries.firstIndex(where: { $0.address == address }) else { return }
        // Connections that were begun together fail together: that is one failure.
        if entries[index].failures == 0 || entries[index].failedAt + entries[index].pause <= now {
            entries[index].failures += 1
        }
        entries[index].failedAt = now
        entries[index].skippedUntil = now + entries[index].pause
    }

    /// What the resolver says now; an address that was known keeps its failures.
    mutating func replace(with addresses: [SocketAddress]) {
        entries = addresses.map { address in
            entries.first { $0.address == address } ?? Entry(address: address)
        }
    }
}
