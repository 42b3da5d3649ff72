import CountersignWire

/// The time in a cookie's `Expires`, which servers write in many ways. Source: RFC 6265 §5.1.1.
enum CookieDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// Whole Unix seconds; nil for what is no time.
    static func seconds(_ text: String) -> Int64? {
        var (clock, day, month, year) = ([Int]?.none, Int?.none, Int?.none, Int?.none)
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            let word = String(Substring(token)).lowercased()
            if clock == nil, let found = time(word) {
                clock = found
            } else if day == nil, let found = leadingNumber(word, digits: 1...2) {
                day = found
            } else if month == nil, let found = months.firstIndex(of: String(word.prefix(3))) {
                month = found + 1
            } else if year == nil, let found = leadingNumber(word, digits: 2...4) {
                year = found
            }
        }
        guard let clock, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 }
        if (0...69).contains(year) { year += 2000 }
        guard year >= 1601, clock[0] <= 23, clock[1] <= 59, clock[2] <= 59 else { return nil }
        guard let days = days(year: year, month: month, day: day) else { return nil }
        return days * 86_400 + Int64(clock[0] * 3600 + clock[1] * 60 + clock[2])
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// `h:m:s`, each of one digit or two; what follows the last digit does not count.
    private static func time(_ word: String) -> [Int]? {
        let parts = word.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.allSatisfy(ASCII.isDigit), parts[1].utf8.allSatisfy(ASCII.isDigit) else {
            return nil
        }
        let numbers = parts.compactMap { leadingNumber(String($0), digits: 1...2) }
        return numbers.count == 3 ? numbers : nil
    }

    /// The number at the start, where it has so many digits and no more.
    private static func leadingNumber(_ word: String, digits: ClosedRange<Int>) -> Int? {
        let number = word.utf8.prefix(while: ASCII.isDigit)
        guard digits.contains(number.count) else { return nil }
        return Int(String(Substring(number)))
    }

    /// Days since 1970-01-01; nil for a day that the month does not have. Source: the Gregorian calendar's rule of leap years.
    private static func days(year: Int, month: Int, day: Int) -> Int64? {
        let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (1...lengths[month - 1]).contains(day) else { return nil }
        let before = year - 1
        let leapDays = before / 4 - before / 100 + before / 400
        let upToYear = before * 365 + leapDays
        let epoch = 719_162  // Days from year 1 to 1970.
        return Int64(upToYear - epoch + lengths[..<(month - 1)].reduce(0, +) + day - 1)
    }
}
