#if canImport(Observation)
    import Observation

    /// A client's state for SwiftUI's views: a view that reads ``state`` is drawn anew when it changes.
    ///
    /// ```swift
    /// @State private var session = ObservedState(of: client)
    /// ```
    ///
    /// On iOS 16 take ``CountersignClient/states``, or Combine's publisher `statePublisher`.
    @available(iOS 17, macOS 14, tvOS 17, watchOS 10, visionOS 1, *)
    @Observable @MainActor public final class ObservedState {
        /// As ``CountersignClient/state``, changed on the main actor.
        public private(set) var state: CountersignState

        /// Follows `client` until the client or this object ends, whichever is first.
        public init(of client: CountersignClient) {
            state = client.state
            let states = client.states
            // A stream does not keep its client.
            Task { [weak self] in
                for await state in states {
                    guard let self else { return }
                    self.state = state
                }
            }
        }

        /// The signed-in account; nil if there is none, or if the state requires something else first.
        public var account: CountersignAccount? {
            if case .active(let account) = state { account } else { nil }
        }
    }
#endif
