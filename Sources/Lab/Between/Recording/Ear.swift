import Synchronization

/// Where a relay tells what passes it.
final class Ear: Sendable {
    enum Side { case client, server }

    private let heard = Mutex<[(connection: UInt64, conversation: Conversation)]>([])
    /// Of one side of a connection. What comes beyond is not kept.
    private static let limit = 8 << 20

    var recording: Recording { Recording(heard.withLock { $0.map(\.conversation) }) }

    func hear(_ bytes: [UInt8], from side: Side, on connection: UInt64) {
        heard.withLock { heard in
            let index = heard.lastIndex { $0.connection == connection } ?? heard.count
            if index == heard.count { heard.append((connection, Conversation())) }
            switch side {
            case .client where heard[index].conversation.client.count < Self.limit:
                heard[index].conversation.client += bytes
            case .server where heard[index].conversation.server.count < Self.limit:
                heard[index].conversation.server += bytes
            default: break
            }
        }
    }
}
