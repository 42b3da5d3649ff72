import CountersignSeal
import CountersignWire

/// The value sent as `password` on each rung. Client and server share these functions; they never compare.
/// Source: docs/protocol.md, "The login ladder".
package enum LoginLadder {
    /// What a server in the field keeps for a password: on every rung but the last, just what is sent.
    package static func storedValue(
        of password: Secret, on rung: Rung, settings: LadderSettings
    ) throws(LadderSettings.MissingSettingError) -> Secret {
        switch rung {
        case .plainGet, .plainPost: return password
        case .base64: return password.base64
        case .md5: return hexMD5([password])
        case .md5Salt: return hexMD5([password, try settings.requireSalt()])
        case .hmacMD5: return hexMD5([hexHMAC(of: password, key: try settings.requireKey())])
        case .hmacMD5Time: return hexHMAC(of: password, key: minuteKey(try settings.requireKey()))
        }
    }

    /// What a client sends at `time` (Unix seconds) for what a server in the field keeps.
    package static func sentValue(
        for kept: Secret, on rung: Rung, settings: LadderSettings, at time: Int64
    ) throws(LadderSettings.MissingSettingError) -> Secret {
        guard rung == .hmacMD5Time else { return kept }
        return sentValue(
            for: kept, at: LadderMinute(at: time, settings: settings),
            key: minuteKey(try settings.requireKey()))
    }

    /// The last rung's value of one minute: hex HMAC-MD5 under ``minuteKey(_:)`` of what is kept and the
    /// minute's text.
    package static func sentValue(for kept: Secret, at minute: LadderMinute, key: Secret) -> Secret {
        let text = minute.text
        var message = ByteBuffer(capacity: kept.count + text.count)
        kept.withExposedBytes { message.append($0) }
        message.append(text.span)
        return key.withExposedBytes { key in hex(HMACMD5.authenticate(message.span, key: key)) }
    }

    /// The last rung's key: hex MD5 of the app's.
    package static func minuteKey(_ key: Secret) -> Secret { hexMD5([key]) }

    private static func hexMD5(_ parts: [Secret]) -> Secret {
        var hash = MD5()
        for part in parts { part.withExposedBytes { hash.update($0) } }
        return hex(hash.finish())
    }

    private static func hexHMAC(of message: Secret, key: Secret) -> Secret {
        key.withExposedBytes { key in
            message.withExposedBytes { message in hex(HMACMD5.authenticate(message, key: key)) }
        }
    }

    private static func hex(_ digest: Digest16) -> Secret {
        var text = ByteBuffer(capacity: 32)
        Hex.append(digest.span, to: &text)
        return Secret(copying: text.span)
    }
}

extension Secret {
    fileprivate var base64: Secret {
        withExposedBytes { bytes in
            var text = ByteBuffer(capacity: (bytes.count + 2) / 3 * 4)
            Base64.encode(bytes, as: .standard, into: &text)
            return Secret(copying: text.span)
        }
    }
}

/// A minute on the wall clock of an app's zone, counted from 1970-01-01 00:00 of that clock.
package struct LadderMinute: Sendable, Hashable {
    package let number: Int64

    /// Years 1 to 9999, whose numbers have the four digits that the text has room for. A clock beyond reads
    /// as its nearest end: it refuses logins, and must not trap.
    private static let written = Int64(-62_135_596_800)...Int64(253_402_300_799)

    /// The minute of a time in Unix seconds.
    package init(at time: Int64, settings: LadderSettings) {
        let (local, overflow) = time.addingReportingOverflow(Int64(settings.timezoneOffset))
        let range = LadderMinute.written
        let seconds = min(max(overflow ? time : local, range.lowerBound), range.upperBound)
        // Rounded down, before 1970 too.
        number = (seconds - range.lowerBound) / 60 + range.lowerBound / 60
    }

    private init(number: Int64) { self.number = number }

    package var previous: LadderMinute { LadderMinute(number: number - 1) }

    /// `yyyy-MM-ddHH:mm`.
    package var text: [UInt8] { CivilTime(seconds: number * 60).minuteText }
}

/// What an app's clients have built in for the ladder: its policy keys `legacy-salt`, `legacy-key` and
/// `timezone`.
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

    /// The app's settings do not suffice for the requested rung.
    package enum MissingSettingError: String, Error, Sendable, CustomStringConvertible {
        case salt = "legacy-salt"
        case key = "legacy-key"

        package var description: String { "the app's policy has no `\(rawValue)`, which this rung needs" }
    }

    func requireSalt() throws(MissingSettingError) -> Secret {
        guard let salt else { throw .salt }
        return salt
    }

    func requireKey() throws(MissingSettingError) -> Secret {
        guard let key else { throw .key }
        return key
    }
}
