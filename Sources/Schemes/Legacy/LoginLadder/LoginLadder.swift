import CountersignSeal
import CountersignWire

/// What is sent as `password` on each rung. Client and server share these functions; they never compare.
/// Source: docs/protocol.md, "The login ladder".
package enum LoginLadder {
    /// What a server in the field keeps for a password: on every rung but the last, just what is sent.
    package static func kept(
        _ password: Secret, on rung: Rung, _ settings: LadderSettings
    ) throws(LadderSettings.Missing) -> Secret {
        switch rung {
        case .plainGet, .plainPost: return password
        case .base64: return password.base64
        case .md5: return hexMD5([password])
        case .md5Salt: return hexMD5([password, try settings.neededSalt()])
        case .hmacMD5: return hexMD5([hexHMAC(of: password, key: try settings.neededKey())])
        case .hmacMD5Time: return hexHMAC(of: password, key: minuteKey(try settings.neededKey()))
        }
    }

    /// What a client sends at `time` (Unix seconds) for what a server in the field keeps.
    package static func sent(
        _ kept: Secret, on rung: Rung, _ settings: LadderSettings, at time: Int64
    ) throws(LadderSettings.Missing) -> Secret {
        guard rung == .hmacMD5Time else { return kept }
        return sent(kept, at: Minute(time, settings), key: minuteKey(try settings.neededKey()))
    }

    /// The last rung's value of one minute: hex HMAC-MD5 under ``minuteKey(_:)`` of what is kept and the minute's text.
    package static func sent(_ kept: Secret, at minute: Minute, key: Secret) -> Secret {
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
            Base64.encode(bytes, .standard, into: &text)
            return Secret(copying: text.span)
        }
    }
}
