import CountersignAuthority
import CountersignHTTP
import CountersignServer
import CountersignThreads
import CountersignWire

/// The figures of the first page that follow the traffic. The page has them when it is loaded; a script
/// replaces them by what the stream of events says.
///
/// Each response of the stream is one event with a time after which the browser asks again, so that an open
/// page holds no connection between two events. Source: HTML Living Standard §9.2.
struct LiveFigures: Sendable {
    struct Tile: Sendable {
        let id: String
        let title: String
        let value: String
        /// The same a day ago.
        let before: String
    }

    private static let pause = 5_000
    private static let minutes: Int64 = 60

    let tiles: [Tile]
    /// The path of the chart, 600 wide and 80 high.
    let chart: String
    /// The most requests of a minute of the chart.
    let most: UInt64
    /// Which minute the tiles are of.
    let time: String
    private let problems: [String]
    private let warnings: [String]
    private let isComplete: Bool

    init(_ visit: ConsoleVisit) {
        isComplete = visit.may(.serverRead)
        let latest = visit.figures.traffic.last(Int(LiveFigures.minutes))
        let minute = latest.last
        let before = minute.flatMap { visit.figures.traffic.minute($0.number - 24 * 60) }
        tiles = LiveFigures.tiles(of: minute, before: before)
        most = latest.map(\.requests).max() ?? 0
        chart = LiveFigures.chart(of: latest, most: most)
        time =
            minute.map { "Figures of the minute from \(TimeText.text($0.number * 60))." }
            ?? "The first minute is not over yet."
        let status = visit.figures.status(at: visit.now)
        problems = status.problems.map { "\($0.cause): \($0.detail)" }
        warnings = status.warnings.map { "\($0.cause): \($0.detail)" }
    }

    private static func tiles(
        of minute: TrafficHistory.Minute?, before: TrafficHistory.Minute?
    ) -> [Tile] {
        func count(
            of property: KeyPath<TrafficHistory.Minute, UInt64>, in minute: TrafficHistory.Minute?
        ) -> String {
            minute.map { ConsoleMarkup.number($0[keyPath: property]) } ?? "–"
        }
        func duration(of share: Double, in minute: TrafficHistory.Minute?) -> String {
            minute?.durations.quantile(share).map(milliseconds) ?? "–"
        }
        return [
            Tile(
                id: "accepted", title: "Accepted a minute", value: count(of: \.accepted, in: minute),
                before: count(of: \.accepted, in: before)),
            Tile(
                id: "refused", title: "Refused a minute", value: count(of: \.refused, in: minute),
                before: count(of: \.refused, in: before)),
            Tile(
                id: "failed", title: "Failed a minute", value: count(of: \.failed, in: minute),
                before: count(of: \.failed, in: before)),
            Tile(
                id: "half", title: "Half are faster than", value: duration(of: 0.5, in: minute),
                before: duration(of: 0.5, in: before)),
            Tile(
                id: "tail", title: "99 % are faster than", value: duration(of: 0.99, in: minute),
                before: duration(of: 0.99, in: before)),
        ]
    }

    /// `12.3 ms`.
    static func milliseconds(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10_000).rounded())
        return "\(tenths / 10).\(tenths % 10) ms"
    }

    private static func chart(of minutes: [TrafficHistory.Minute], most: UInt64) -> String {
        guard let last = minutes.last, most > 0 else { return "M0 80H600" }
        var path = "M0 80"
        for minute in minutes where last.number - minute.number < LiveFigures.minutes {
            let x = (LiveFigures.minutes - 1 - (last.number - minute.number)) * 10
            let y = 80 - Int(Double(minute.requests) / Double(most) * 76)
            path += "H\(x)V\(y)"
        }
        return path + "H600V80Z"
    }

    /// Nothing but what the pages show to this operator.
    var response: ServerResponse {
        var members: [(name: String, value: JSONValue)] = []
        if isComplete {
            for tile in tiles {
                members.append(("live-\(tile.id)", .string(tile.value)))
                members.append(("live-\(tile.id)-before", .string(tile.before)))
            }
            members.append(("live-time", .string(time)))
            members.append(("live-most", .string(ConsoleMarkup.number(most))))
        }
        let event: JSONValue = [
            "texts": .object(members), "chart": .string(isComplete ? chart : ""),
            "problems": .strings(problems), "warnings": .strings(isComplete ? warnings : []),
        ]
        let text = "retry: \(LiveFigures.pause)\ndata: \(event.text)\n\n"
        return ServerResponse(
            status: 200, type: "text/event-stream", fields: ConsoleFields.unstored, body: Array(text.utf8))
    }
}
