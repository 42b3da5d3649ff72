import CountersignSeal

/// What an app's clients have built in for the ladder: its policy keys `legacy-salt`, `legacy-key` and `timezone`.
package struct LadderSettings: Sendable {
    /// Needed by `md5-salt`, on the client.
    package var salt: Secret?
    /// Needed by `hmac-md5` on the client, by `hmac-md5-time` on both sides.
    package var key: Secret?
    /// Seconds east of UTC: whose minute it is.
    package var timezoneOffset: Int

    package init(salt: Secret? = nil, key: Secret? = nil, timezoneOffset: Int = 0) {
        self.salt = salt
        self.key = key
        self.timezoneOffset = timezoneOffset
    }

    /// A rung was asked for that the app's settings do not suffice for.
    package enum Missing: String, Error, Sendable, CustomStringConvertible {
        case salt = "legacy-salt"
        case key = "legacy-key"

        package var description: String { "the app's policy has no `\(rawValue)`, which this rung needs" }
    }

    func neededSalt() throws(Missing) -> Secret {
        guard let salt else { throw .salt }
        return salt
    }

    func neededKey() throws(Missing) -> Secret {
        guard let key else { throw .key }
        return key
    }
}
