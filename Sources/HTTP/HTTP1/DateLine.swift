import Glibc

/// The `Date` field of answers. Source: RFC 9110 §5.6.7, §6.6.1.
enum DateLine {
    /// Whole Unix seconds.
    static func now() -> Int64 { Int64(time(nil)) }

    /// `Date: Sun, 06 Nov 1994 08:49:37 GMT` and the line's end, at those Unix seconds.
    static func bytes(at seconds: Int64) -> [UInt8] {
        var moment = time_t(seconds)
        var parts = tm()
        gmtime_r(&moment, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let (day, month) = (Int(parts.tm_wday), Int(parts.tm_mon))
        guard days.indices.contains(day), months.indices.contains(month) else { return [] }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(days[day]), \(two(parts.tm_mday)) \(months[month]) \(Int(parts.tm_year) + 1900)"
        return Array("Date: \(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT\r\n".utf8)
    }
}
