import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One account's use of one minute's value. Who reads a login off the wire holds a value that is good for two minutes;
/// it is taken once.
package struct MinuteUse: Sendable, Hashable {
    package let account: LegacyAccountID
    package let minute: Minute
    /// Unix seconds from which on the value is refused by the clock, so that the use may be forgotten.
    package let until: Int64

    init(_ account: LegacyAccountID, _ minute: Minute, _ settings: LadderSettings) {
        self.account = account
        self.minute = minute
        until = (minute.number + 2) * 60 - Int64(settings.timezoneOffset)
    }

    /// Thirty-two bytes that stand for it in a replay guard. Not the value that was sent: two accounts with one password
    /// send the same in the same minute.
    package var replayKey: ShortBytes {
        var hash = SHA256()
        for part in ["countersign/1 minute use", account.app, account.name, "\(minute.number)"] {
            let bytes = Array(part.utf8)
            // Lengths first: no two uses are spelled alike.
            hash.update(Array("\(bytes.count):".utf8).span)
            hash.update(bytes.span)
        }
        return ShortBytes(hash.finish())
    }
}

extension ReplayEntry {
    /// Remembered under a name that is no release's, since none may begin like a token.
    package init?(spending use: MinuteUse, at now: Int64) {
        guard let scope = KeyID("s_minute-use") else { return nil }
        // The end of the minute: within 60 s of now for as long as the value is taken, and remembered for 60 s after it at least,
        // which is when the clock begins to refuse it.
        self.init(
            keyID: scope, scheme: .formMD5, replayKey: use.replayKey, created: use.until - 60, now: now)
    }
}
