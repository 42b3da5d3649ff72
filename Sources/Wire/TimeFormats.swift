/// The two spellings of UTC that AWS Signature Version 4 reads; ``CivilTime`` has form-md5's own.
extension CivilTime {
    /// `yyyyMMddTHHmmssZ`, which has 16 bytes. Nil for anything else. Source: ISO 8601, basic format.
    package init?(basic text: borrowing Span<UInt8>) {
        var cursor = Cursor(at: 0)
        guard text.count == 16,
            let year = cursor.number(in: text, digits: 4...4), let month = cursor.number(in: text, digits: 2...2),
            let day = cursor.number(in: text, digits: 2...2), cursor.skip(UInt8(ascii: "T"), in: text),
            let hour = cursor.number(in: text, digits: 2...2), let minute = cursor.number(in: text, digits: 2...2),
            let second = cursor.number(in: text, digits: 2...2), cursor.skip(UInt8(ascii: "Z"), in: text)
        else { return nil }
        self.init(year, month, day, hour, minute, second)
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`; for `GMT` mail's `+0000` or `-0000` may stand, as botocore writes it. Nil for
    /// anything else. Whether that day was a Sunday is not asked: nothing depends on it.
    /// Source: RFC 9110 §5.6.7, IMF-fixdate; RFC 5322 §3.3.
    package init?(http text: borrowing Span<UInt8>) {
        guard text.count >= 29, text.extracting(3..<5).matches(", ") else { return nil }
        let zone = text.extracting(25..<text.count)
        guard zone.matches(" GMT") || zone.matches(" +0000") || zone.matches(" -0000") else { return nil }
        guard CivilTime.index(of: text.extracting(0..<3), in: "SunMonTueWedThuFriSat") != nil,
            let month = CivilTime.index(of: text.extracting(8..<11), in: "JanFebMarAprMayJunJulAugSepOctNovDec")
        else { return nil }
        let space = UInt8(ascii: " ")
        let colon = UInt8(ascii: ":")
        var cursor = Cursor(at: 5)
        guard let day = cursor.number(in: text, digits: 2...2), cursor.skip(space, in: text) else { return nil }
        cursor.at = 11
        guard cursor.skip(space, in: text), let year = cursor.number(in: text, digits: 4...4),
            cursor.skip(space, in: text), let hour = cursor.number(in: text, digits: 2...2),
            cursor.skip(colon, in: text), let minute = cursor.number(in: text, digits: 2...2),
            cursor.skip(colon, in: text), let second = cursor.number(in: text, digits: 2...2)
        else { return nil }
        self.init(year, month + 1, day, hour, minute, second)
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
