import CountersignWire

/// A minute on the wall clock of an app's zone, counted from 1970-01-01 00:00 of that clock.
package struct Minute: Sendable, Hashable {
    package let number: Int64

    /// Years 1 to 9999, whose numbers have the four digits that the text has room for. A clock beyond reads as its
    /// nearest end: it refuses logins, and must not trap.
    private static let written = Int64(-62_135_596_800)...Int64(253_402_300_799)

    /// The minute of a time in Unix seconds.
    package init(_ time: Int64, _ settings: LadderSettings) {
        let (local, overflow) = time.addingReportingOverflow(Int64(settings.timezoneOffset))
        let range = Minute.written
        let seconds = min(max(overflow ? time : local, range.lowerBound), range.upperBound)
        // Rounded down, before 1970 too.
        number = (seconds - range.lowerBound) / 60 + range.lowerBound / 60
    }

    private init(number: Int64) { self.number = number }

    package var previous: Minute { Minute(number: number - 1) }

    /// `yyyy-MM-ddHH:mm`.
    package var text: [UInt8] { CivilTime(seconds: number * 60).minuteText }
}
