import CountersignWire

/// A point in time as people give it.
enum Moment {
    /// Whole Unix seconds from `now`, a number of seconds, or RFC 3339; nil where the text is none of them.
    static func read(_ text: String, now: Int64) -> Int64? {
        if text == "now" { return now }
        if let seconds = unixSeconds(text) { return seconds }
        return internetTime(text)
    }

    /// Up to the year 9999.
    static func unixSeconds(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(ASCII.isDigit), let seconds = Int64(text),
            seconds < 253_402_300_800
        else { return nil }
        return seconds
    }

    /// As people read it: `2027-01-31 12:00:00 UTC`.
    static func text(_ seconds: Int64) -> String {
        guard (0..<253_402_300_800).contains(seconds) else { return "\(seconds)" }
        let text = CivilTime(seconds: seconds).description
        return "\(text.prefix(10)) \(text.dropFirst(11)) UTC"
    }

    /// `2027-01-31T12:00:00Z`, or with an offset such as `+08:00` in the place of `Z`. Source: RFC 3339 §5.6, without
    /// fractions.
    private static func internetTime(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 20 || bytes.count == 25, bytes[10] == UInt8(ascii: "T") else { return nil }
        var clock = Array(bytes[..<19])
        clock[10] = UInt8(ascii: "-")
        guard let civil = CivilTime(clock.span) else { return nil }
        if bytes.count == 20 { return bytes[19] == UInt8(ascii: "Z") ? civil.seconds : nil }
        guard let offset = Offset(Array(bytes[19...])) else { return nil }
        return civil.seconds - offset.seconds
    }

    /// `+HH:MM` or `-HH:MM`.
    private struct Offset {
        var seconds: Int64

        init?(_ bytes: [UInt8]) {
            let digits = [1, 2, 4, 5].map { Int64(bytes[$0]) - 0x30 }
            guard bytes[3] == UInt8(ascii: ":"), digits.allSatisfy({ (0...9).contains($0) }) else { return nil }
            let hours = digits[0] * 10 + digits[1]
            let minutes = digits[2] * 10 + digits[3]
            guard hours < 24, minutes < 60 else { return nil }
            switch bytes[0] {
            case UInt8(ascii: "+"): seconds = hours * 3600 + minutes * 60
            case UInt8(ascii: "-"): seconds = -(hours * 3600 + minutes * 60)
            default: return nil
            }
        }
    }
}
