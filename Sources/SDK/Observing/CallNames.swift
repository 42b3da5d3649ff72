import CountersignMemory
import CountersignTrust

/// What a client's calls are named in its events.
final class CallNames: Sendable {
    private let host: String
    private let count = Locked(0)

    init(host: String) { self.host = host }

    /// The next call's: without its query, which may hold anything.
    func next(_ method: APIMethod, _ path: String) -> CountersignEvent.Call {
        let number = count.with { count in
            count += 1
            return count
        }
        let bare = path.prefix { $0 != "?" && $0 != "#" }
        return CountersignEvent.Call(number: number, method: method, host: host, path: String(bare))
    }
}
