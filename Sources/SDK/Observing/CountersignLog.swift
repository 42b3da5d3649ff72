/// Where a client writes its log. An entry is made from a ``CountersignEvent``, and so holds no field, body,
/// query, name, password or token, at any level.
public struct CountersignLog: Sendable {
    /// How much an entry matters.
    public enum Level: String, Sendable, Hashable, Comparable, CaseIterable {
        /// Each copy of each request.
        case debug
        /// Requests and refreshes.
        case info
        /// Changes that users see: a session's end, an update.
        case notice
        /// Problems that were resolved or have to be: a wrong clock, a request that failed.
        case warning
        /// A server that is not trusted.
        case error

        /// By how much it matters.
        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }

        private var rank: Int { Level.allCases.firstIndex(of: self) ?? 0 }
    }

    /// One line of a log.
    public struct Entry: Sendable, Hashable, CustomStringConvertible {
        /// How much it matters.
        public let level: Level
        /// In plain words, on one line.
        public let message: String
        /// The event that it was made from.
        public let event: CountersignEvent

        init(_ event: CountersignEvent) {
            (level, message, self.event) = (event.level, event.message, event)
        }

        /// Level and message.
        public var description: String { "\(level.rawValue): \(message)" }
    }

    let handler: (@Sendable (Entry) -> Void)?

    private init(_ handler: (@Sendable (Entry) -> Void)?) { self.handler = handler }

    /// Nothing is written.
    public static let off = CountersignLog(nil)

    /// Calls `handle` for each entry of `level` and above, in order, one at a time, on a thread of the
    /// client's. If it is slow, the oldest of more than a thousand waiting entries are dropped.
    public static func handler(
        from level: Level = .info, _ handle: @escaping @Sendable (Entry) -> Void
    ) -> CountersignLog {
        CountersignLog { entry in
            if entry.level >= level { handle(entry) }
        }
    }

    /// Follows `events` to their end.
    func follow(_ events: AsyncStream<CountersignEvent>) {
        guard let handler else { return }
        Task.detached { for await event in events { handler(Entry(event)) } }
    }
}

extension CountersignEvent {
    fileprivate var level: CountersignLog.Level {
        switch self {
        case .began, .sent, .presenceNeeded: .debug
        case .answered, .refreshing, .refreshed(.renewed): .info
        case .failed(_, .cancelled, _): .info
        case .state, .pinsReplaced, .pinsDiscarded, .updateAvailable: .notice
        case .failed, .refreshed, .clockCorrected: .warning
        case .judged(let verdict): verdict.isAccepted ? .warning : .error
        }
    }

    fileprivate var message: String {
        switch self {
        case .began(let call): "\(call) begins"
        case .sent(let call, let copy, let reason):
            "\(call): copy \(copy) is sent" + (reason.map { ", because \($0.words)" } ?? "")
        case .answered(let call, let status, let signer, let after):
            "\(call): \(status), signed by \(signer.words), after \(after.milliseconds) ms"
        case .failed(let call, let failure, let after):
            "\(call): failed (\(failure.rawValue)) after \(after.milliseconds) ms"
        case .refreshing: "the session's key is being renewed"
        case .refreshed(.renewed): "the session's key is renewed"
        case .refreshed(.refused(let status)): "the session's key is not renewed: status \(status)"
        case .refreshed(.lost): "the session's key is not renewed: no answer"
        case .clockCorrected(let offset): "the device's clock is \(offset) s behind the server's"
        case .judged(let verdict): "\(verdict)"
        case .pinsReplaced(let version): "pins of version \(version) are in force"
        case .pinsDiscarded(let error): "the stored pins are not in force, the built-in ones are: \(error)"
        case .state(let state): "the state is \(state.rawValue)"
        case .presenceNeeded: "the device's key needs a person's presence"
        case .updateAvailable(let link, _):
            "this version will be retired" + (link.map { "; the next one: \($0)" } ?? "")
        }
    }
}

extension CountersignEvent.Call: CustomStringConvertible {
    /// `#7 GET api.example.com/notes`
    public var description: String { "#\(number) \(method) \(host)\(path)" }
}

extension CountersignEvent.Retry {
    fileprivate var words: String {
        switch self {
        case .lostAnswer: "the answer was lost"
        case .refused(let code): "the copy before it was refused (\(code))"
        case .backOff(let delay): "it failed for now, \(delay.milliseconds) ms ago"
        case .other: "an interceptor asked again"
        }
    }
}

extension APIResponse.Signer {
    fileprivate var words: String {
        switch self {
        case .session: "the session"
        case .authority: "the authority"
        case .nobody: "nobody"
        }
    }
}

extension Duration {
    fileprivate var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
