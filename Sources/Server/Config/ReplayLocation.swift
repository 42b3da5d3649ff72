import CountersignRedis

/// Where the entries of admitted requests are kept, as `--replay` names it.
public struct ReplayLocation: Sendable, Equatable {
    /// Nil for the replay file.
    let redis: RedisAddress?

    /// A memory-mapped file in the data folder, for one machine.
    public static let file = ReplayLocation(redis: nil)

    /// The forms that ``init(text:)`` accepts, for messages.
    static let forms = "file, or \(RedisAddress.form)"

    private init(redis: RedisAddress?) { self.redis = redis }

    /// `memory` is the name of the file in versions without Redis.
    init?(text: String) {
        if text == "file" || text == "memory" {
            self = .file
        } else if let address = RedisAddress(url: text) {
            redis = address
        } else {
            return nil
        }
    }

    /// Without a password.
    package var text: String { redis?.text ?? "file" }

    /// Whether the replay file is used.
    package var isFile: Bool { redis == nil }
}
