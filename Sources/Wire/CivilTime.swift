/// A wall clock's reading, counted in seconds since 1970 as if it were UTC.
package struct CivilTime: Sendable, Equatable {
    package var seconds: Int64

    package init(seconds: Int64) { self.seconds = seconds }

    /// `yyyy-MM-dd-HH:mm:ss` as form-md5 clients write it: month, day and hour may lack their leading zero, and `:SS`,
    /// hundredths of a second, may follow. Nil for anything else, and for a day that the calendar does not have.
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
            guard cursor.skip(UInt8(ascii: ":"), in: text), cursor.number(in: text, digits: 2...2) != nil else {
                return nil
            }
        }
        guard cursor.at == text.count else { return nil }
        self.init(year, month, day, hour, minute, second)
    }

    /// Nil for a day or time that the calendar does not have. A year has at most four digits.
    init?(_ year: Int, _ month: Int, _ day: Int, _ hour: Int, _ minute: Int, _ second: Int) {
        guard (1...12).contains(month), hour < 24, minute < 60, second < 60 else { return nil }
        guard day >= 1, day <= CivilTime.days(in: month, of: year) else { return nil }
        let days = CivilTime.days(to: year, month, day)
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
    package static func internetText(_ seconds: Int64) -> String {
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
    private static func days(to year: Int, _ month: Int, _ day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return 365 * year + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }

    /// The inverse, for days from year 0 on: a first guess at the year that is at most one too high, then months.
    private static func date(ofDay days: Int) -> (year: Int, month: Int, day: Int) {
        var year = 1970 + days / 365
        while CivilTime.days(to: year, 1, 1) > days { year -= 1 }
        var month = 1
        var rest = days - CivilTime.days(to: year, 1, 1)
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
