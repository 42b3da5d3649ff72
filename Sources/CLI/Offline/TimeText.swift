import CountersignWire

/// A point in time as people give it, and as they are told it.
enum TimeText {
    /// What may be given, for help and for messages.
    static let expected = "now, +7d (or s, m, h), 2026-11-29, 2026-11-29T12:00:00Z or Unix seconds"

    /// Reads `now`, a duration from now such as `+7d`, a day (its first second, UTC), RFC 3339, or a number
    /// of Unix seconds. Returns whole Unix seconds; nil if the text has none of these forms.
    static func read(_ text: String, now: Int64) -> Int64? {
        if text == "now" { return now }
        if let seconds = unixSeconds(text) { return seconds }
        return later(text, than: now) ?? day(text) ?? internetTime(text)
    }

    /// What the option of that name says, in whole Unix seconds.
    static func parse(_ text: String, option: String, now: Int64) throws(OperationalError) -> Int64 {
        if let time = read(text, now: now) { return time }
        throw OperationalError(.usage, message: "--\(option) `\(text)`: expected \(expected)")
    }

    /// `+90s`, `+5m`, `+12h`, `+7d`: up to the year 9999.
    private static func later(_ text: String, than now: Int64) -> Int64? {
        guard text.hasPrefix("+"), let unit = units[text.last ?? " "] else { return nil }
        guard let count = unixSeconds(String(text.dropFirst().dropLast())) else { return nil }
        let (seconds, tooMany) = count.multipliedReportingOverflow(by: unit)
        let (time, tooLate) = now.addingReportingOverflow(seconds)
        return tooMany || tooLate || time >= end ? nil : time
    }

    private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
    /// The first second of the year 10000.
    private static let end: Int64 = 253_402_300_800

    /// `2026-11-29`.
    private static func day(_ text: String) -> Int64? {
        text.utf8.count == 10 ? internetTime(text + "T00:00:00Z") : nil
    }

    /// Up to the year 9999.
    static func unixSeconds(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(ASCII.isDigit), let seconds = Int64(text),
            seconds < end
        else { return nil }
        return seconds
    }

    /// As every command prints it, and takes it back: `2027-01-31T12:00:00Z`. Source: RFC 3339.
    static func text(_ seconds: Int64) -> String {
        guard (0..<end).contains(seconds) else { return "\(seconds)" }
        return "\(dayText(seconds))T\(CivilTime(seconds: seconds).description.dropFirst(11))Z"
    }

    /// Its day: `2027-01-31`.
    static func dayText(_ seconds: Int64) -> String {
        String(CivilTime(seconds: seconds).description.prefix(10))
    }

    /// `2027-01-31T12:00:00Z`, or with an offset such as `+08:00` in the place of `Z`. Source: RFC 3339 §5.6,
    /// without fractions.
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
            guard bytes[3] == UInt8(ascii: ":"), digits.allSatisfy({ (0...9).contains($0) }) else {
                return nil
            }
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
