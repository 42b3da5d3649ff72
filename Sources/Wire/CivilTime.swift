/// A wall clock's reading, counted in seconds since 1970 as if it were UTC.
package struct CivilTime: Sendable, Equatable {
    package var seconds: Int64

    package init(seconds: Int64) { self.seconds = seconds }

    /// `yyyy-MM-dd-HH:mm:ss` as form-md5 clients write it: month, day and hour may lack their leading zero,
    /// and `:SS`, hundredths of a second, may follow. Nil for anything else, and for a day that the calendar
    /// does not have.
    package init?(_ text: borrowing Span<UInt8>) {
        var cursor = Cursor(at: 0)
        guard
            let year = cursor.number(in: text, digits: 4...4), cursor.skip(UInt8(ascii: "-"), in: text),
            let month = cursor.number(in: text, digits: 1...2), cursor.skip(UInt8(ascii: "-"), in: text),
            let day = cursor.number(in: text, digits: 1...2), cursor.skip(UInt8(ascii: "-"), in: text),
            let hour = cursor.number(in: text, digits: 1...2), cursor.skip(UInt8(ascii: ":"), in: text),
            let minute = cursor.number(in: text, digits: 2...2), cursor.skip(UInt8(ascii: ":"), in: text),
            let second = cursor.number(in: text, digits: 2...2)
        else { return nil }
        if cursor.at < text.count {
            guard cursor.skip(UInt8(ascii: ":"), in: text), cursor.number(in: text, digits: 2...2) != nil
            else {
                return nil
            }
        }
        guard cursor.at == text.count else { return nil }
        self.init(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    /// Nil for a day or time that the calendar does not have. A year has at most four digits.
    init?(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        guard (1...12).contains(month), hour < 24, minute < 60, second < 60 else { return nil }
        guard day >= 1, day <= CivilTime.days(in: month, of: year) else { return nil }
        let days = CivilTime.days(toYear: year, month: month, day: day)
        seconds = Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }

    /// `yyyy-MM-dd-HH:mm:ss`, zeros and all.
    package var description: String {
        let (year, month, day, hour, minute, second) = parts
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(year)-\(two(month))-\(two(day))-\(two(hour)):\(two(minute)):\(two(second))"
    }

    /// A time in Unix seconds as `2027-01-31T12:00:00Z`; the number itself beyond the year 9999, and before
    /// 1970. Source: RFC 3339 §5.6.
    package static func rfc3339Text(_ seconds: Int64) -> String {
        guard (0..<253_402_300_800).contains(seconds) else { return "\(seconds)" }
        let text = CivilTime(seconds: seconds).description
        return "\(text.prefix(10))T\(text.dropFirst(11))Z"
    }

    /// The calendar's and the clock's numbers, for years from 0 on.
    var parts: (year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        var days = Int(seconds / 86_400)
        var rest = Int(seconds % 86_400)
        if rest < 0 {
            rest += 86_400
            days -= 1
        }
        let (year, month, day) = CivilTime.date(ofDay: days)
        return (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
    }

    private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days from 1970-01-01. Years are counted from March, so that the leap day is the last of its year.
    private static func days(toYear year: Int, month: Int, day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return 365 * year + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }

    /// The inverse, for days from year 0 on: a first guess at the year that is at most one too high, then
    /// months.
    private static func date(ofDay days: Int) -> (year: Int, month: Int, day: Int) {
        var year = 1970 + days / 365
        while CivilTime.days(toYear: year, month: 1, day: 1) > days { year -= 1 }
        var month = 1
        var rest = days - CivilTime.days(toYear: year, month: 1, day: 1)
        while rest >= CivilTime.days(in: month, of: year) {
            rest -= CivilTime.days(in: month, of: year)
            month += 1
        }
        return (year, month, rest + 1)
    }

    struct Cursor {
        var at: Int

        mutating func skip(_ byte: UInt8, in text: borrowing Span<UInt8>) -> Bool {
            guard at < text.count, text[at] == byte else { return false }
            at += 1
            return true
        }

        /// As many digits as there are, if that many are allowed; four at most, so nothing can overflow.
        mutating func number(in text: borrowing Span<UInt8>, digits: ClosedRange<Int>) -> Int? {
            let start = at
            var number = 0
            while at < text.count, at - start < digits.upperBound, ASCII.isDigit(text[at]) {
                number = number * 10 + Int(text[at] - UInt8(ascii: "0"))
                at += 1
            }
            return at - start >= digits.lowerBound ? number : nil
        }
    }
}

/// The two spellings of UTC that AWS Signature Version 4 reads; ``CivilTime`` has form-md5's own.
extension CivilTime {
    /// `yyyyMMddTHHmmssZ`, which has 16 bytes. Nil for anything else. Source: ISO 8601, basic format.
    package init?(basic text: borrowing Span<UInt8>) {
        var cursor = Cursor(at: 0)
        guard text.count == 16,
            let year = cursor.number(in: text, digits: 4...4),
            let month = cursor.number(in: text, digits: 2...2),
            let day = cursor.number(in: text, digits: 2...2), cursor.skip(UInt8(ascii: "T"), in: text),
            let hour = cursor.number(in: text, digits: 2...2),
            let minute = cursor.number(in: text, digits: 2...2),
            let second = cursor.number(in: text, digits: 2...2), cursor.skip(UInt8(ascii: "Z"), in: text)
        else { return nil }
        self.init(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`; for `GMT` mail's `+0000` or `-0000` may stand, as botocore writes it.
    /// Nil for anything else. Whether that day was a Sunday is not asked: nothing depends on it. Source: RFC
    /// 9110 §5.6.7, IMF-fixdate; RFC 5322 §3.3.
    package init?(http text: borrowing Span<UInt8>) {
        guard text.count >= 29, text.extracting(3..<5).matches(", ") else { return nil }
        let zone = text.extracting(25..<text.count)
        guard zone.matches(" GMT") || zone.matches(" +0000") || zone.matches(" -0000") else { return nil }
        guard CivilTime.index(of: text.extracting(0..<3), in: "SunMonTueWedThuFriSat") != nil,
            let month = CivilTime.index(
                of: text.extracting(8..<11), in: "JanFebMarAprMayJunJulAugSepOctNovDec")
        else { return nil }
        let space = UInt8(ascii: " ")
        let colon = UInt8(ascii: ":")
        var cursor = Cursor(at: 5)
        guard let day = cursor.number(in: text, digits: 2...2), cursor.skip(space, in: text) else {
            return nil
        }
        cursor.at = 11
        guard cursor.skip(space, in: text), let year = cursor.number(in: text, digits: 4...4),
            cursor.skip(space, in: text), let hour = cursor.number(in: text, digits: 2...2),
            cursor.skip(colon, in: text), let minute = cursor.number(in: text, digits: 2...2),
            cursor.skip(colon, in: text), let second = cursor.number(in: text, digits: 2...2)
        else { return nil }
        self.init(year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second)
    }

    /// Appends `yyyyMMddTHHmmssZ`, for years from 0 to 9999.
    package func appendBasic(to text: inout ByteBuffer) {
        let (year, month, day, hour, minute, second) = parts
        func two(_ number: Int) {
            text.append(UInt8(truncatingIfNeeded: 48 + number / 10 % 10))
            text.append(UInt8(truncatingIfNeeded: 48 + number % 10))
        }
        two(year / 100)
        two(year)
        two(month)
        two(day)
        text.append(UInt8(ascii: "T"))
        two(hour)
        two(minute)
        two(second)
        text.append(UInt8(ascii: "Z"))
    }

    /// Which of the three-letter names in `names` this is, from 0 on.
    private static func index(of name: borrowing Span<UInt8>, in names: StaticString) -> Int? {
        for index in 0..<names.utf8CodeUnitCount / 3 {
            let start = names.utf8Start + index * 3
            if name[0] == start[0], name[1] == start[1], name[2] == start[2] { return index }
        }
        return nil
    }
}

/// The minute as the login ladder's last rung spells it; ``CivilTime`` has form-md5's own spelling.
extension CivilTime {
    /// `yyyy-MM-ddHH:mm`, which has 15 bytes, of a year from 0 to 9999; nothing between day and hour. Source:
    /// the wire of clients in the field.
    package var minuteText: [UInt8] {
        let (year, month, day, hour, minute, _) = parts
        var text: [UInt8] = []
        text.reserveCapacity(15)
        func two(_ number: Int) {
            text.append(UInt8(truncatingIfNeeded: 48 + number / 10 % 10))
            text.append(UInt8(truncatingIfNeeded: 48 + number % 10))
        }
        two(year / 100)
        two(year)
        text.append(UInt8(ascii: "-"))
        two(month)
        text.append(UInt8(ascii: "-"))
        two(day)
        two(hour)
        text.append(UInt8(ascii: ":"))
        two(minute)
        return text
    }
}
