extension CountersignClient {
    /// What to show now.
    public var state: CountersignState { core.standings.current }

    /// What to show, from now on: the current state first, then each change. For any number of listeners; one who is slow finds
    /// the last state, and misses those in between. Ends when the client does.
    public var states: AsyncStream<CountersignState> { core.standings.stream() }

    /// What the client does, from now on, for a log. For any number of listeners; of one who is slow, the oldest of over a
    /// thousand go. Holds no secrets. Ends when the client does.
    public var events: AsyncStream<CountersignEvent> { core.events.stream() }
}
