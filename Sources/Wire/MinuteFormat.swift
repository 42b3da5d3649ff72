/// The minute as the login ladder's last rung spells it; ``CivilTime`` has form-md5's own spelling.
extension CivilTime {
    /// `yyyy-MM-ddHH:mm`, which has 15 bytes, of a year from 0 to 9999; nothing between day and hour. Source: the wire
    /// of clients in the field.
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
