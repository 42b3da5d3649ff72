import CountersignReplay

/// Where the entries of admitted requests are kept, as `--replay` names it.
public struct ReplayLocation: Sendable, Equatable {
    private enum Place: Equatable {
        case file
        case redis(RedisAddress)
        case store
    }

    private let place: Place

    /// A memory-mapped file in the data folder, for one machine.
    public static let file = ReplayLocation(place: .file)

    /// The PostgreSQL database of the store, for several machines.
    public static let postgreSQL = ReplayLocation(place: .store)

    /// The forms that ``init(text:)`` accepts, for messages.
    static let forms =
        "file, postgres for the database of --store postgres://…, or \(RedisAddress.form)"

    private init(place: Place) { self.place = place }

    /// `memory` is the name of the file in versions without Redis.
    init?(text: String) {
        if text == "file" || text == "memory" {
            self = .file
        } else if text == SharedReplayKind.postgreSQL.rawValue {
            self = .postgreSQL
        } else if let address = RedisAddress(url: text) {
            place = .redis(address)
        } else {
            return nil
        }
    }

    /// Without a password.
    package var text: String {
        switch place {
        case .file: "file"
        case .redis(let address): address.text
        case .store: SharedReplayKind.postgreSQL.rawValue
        }
    }

    /// Nil for the replay file.
    package var shared: SharedReplayKind? {
        switch place {
        case .file: nil
        case .redis: .redis
        case .store: .postgreSQL
        }
    }

    /// Nil unless the guard is on Redis.
    var redis: RedisAddress? { if case .redis(let address) = place { address } else { nil } }

    /// Whether the replay file is used.
    package var isFile: Bool { place == .file }
}
