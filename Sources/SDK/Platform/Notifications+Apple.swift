#if canImport(Security)
    import Foundation

    /// Notifications for apps that use them. ``NotificationPoster`` posts them on the main queue, with its
    /// client as their object.
    extension Notification.Name {
        /// The state has changed. `userInfo` has it under ``NotificationPoster/stateKey``.
        public static let countersignStateDidChange = Notification.Name("countersign.stateDidChange")
        /// The server has ended a session. `userInfo` has a ``SessionEnd`` under
        /// ``NotificationPoster/sessionEndKey``.
        public static let countersignSessionDidEnd = Notification.Name("countersign.sessionDidEnd")
        /// The server no longer serves this version. `userInfo` has the next version's address, if the server
        /// named one, under ``NotificationPoster/updateURLKey``.
        public static let countersignUpdateRequired = Notification.Name("countersign.updateRequired")
    }

    /// Posts a client's changes of state as notifications, for as long as it is kept.
    public final class NotificationPoster: Sendable {
        /// Under it a ``CountersignState``.
        public static let stateKey = "state"
        /// Under it a ``SessionEnd``.
        public static let sessionEndKey = "sessionEnd"
        /// Under it a string.
        public static let updateURLKey = "updateURL"

        private let task: Task<Void, Never>

        /// Begins with the current state.
        public init(_ client: CountersignClient, center: NotificationCenter = .default) {
            let states = client.states
            let object = WeakClient(client)
            let center = SharedCenter(center: center)
            task = Task { @MainActor in
                for await state in states {
                    NotificationPoster.post(state, of: object.client, to: center.center)
                }
            }
        }

        deinit { task.cancel() }

        @MainActor private static func post(
            _ state: CountersignState, of client: CountersignClient?, to center: NotificationCenter
        ) {
            center.post(name: .countersignStateDidChange, object: client, userInfo: [stateKey: state])
            switch state {
            case .signedOut(.ended(let end)):
                center.post(name: .countersignSessionDidEnd, object: client, userInfo: [sessionEndKey: end])
            case .updateRequired(let url):
                center.post(
                    name: .countersignUpdateRequired, object: client,
                    userInfo: url.map { [updateURLKey: $0] } ?? [:])
            case .signedOut(.nobody), .active, .locked, .unavailable: break
            }
        }
    }

    /// Does not retain the client. Safe to share: a weak reference is read whole.
    private final class WeakClient: @unchecked Sendable {
        weak let client: CountersignClient?

        init(_ client: CountersignClient) { self.client = client }
    }

    /// Foundation's centers lock by themselves.
    private struct SharedCenter: @unchecked Sendable {
        let center: NotificationCenter
    }
#endif
