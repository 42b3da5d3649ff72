import CountersignAuthority
import CountersignServer
import CountersignWire

/// The verdicts of the lab's last run: which attack held, and which fell, on each scheme.
enum LabPages {
    static func lab(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        guard let run = try visit.run("getLabRecord").record("run") else {
            return ConsolePage(
                "Lab",
                body: """
                    <p class="empty">The lab has not run, or not with <code>--record</code>. On the server’s
                    machine: <code>countersign lab --record --data \(visit.host.configuration.data)</code></p>
                    """)
        }
        let record: LabRecord
        do {
            record = try LabRecord(reading: run.bytes)
        } catch {
            throw APIProblem(503, code: "unavailable", detail: "the lab's record: \(error.message)")
        }
        let version = try visit.run("getVersion").text("version")
        let other = ConsoleMarkup.badge("this server is \(version)", tone: .warning)
        let counts = LabRecord.order.map { "\(record.count(of: $0)) \($0.word)" }
        return ConsolePage(
            "Lab",
            body: """
                \(verdict(on: record))
                \(ConsoleMarkup.facts([
                    ("Began", ConsoleMarkup.time(record.began)), ("Took", "\(record.seconds) s"),
                    ("Version", "\(record.version) \(record.version == version ? .none : other)"),
                    ("Attacks", "\(counts.joined(separator: ", "))"),
                ]))
                <ul>\(legend)</ul>
                \(ConsoleMarkup.table(
                    "By kind of attack; of each kind the worst mark",
                    head: ["Scheme"] + record.columns.map(\.title),
                    rows: record.rows.map { row in
                        [name(of: row)]
                            + record.columns.map {
                                cell(record.mark(of: row, in: $0), isOurs: row.name.isOurs)
                            }
                    },
                    empty: "No scheme was attacked."))
                <details><summary>Each attack</summary>
                \(ConsoleMarkup.table(
                    "Each attack on each scheme",
                    head: ["Scheme"] + record.attacks.map(\.name.description),
                    rows: record.rows.map { row in
                        [name(of: row)] + row.marks.map { cell($0, isOurs: row.name.isOurs) }
                    },
                    empty: "No scheme was attacked."))
                </details>
                \(skipped(in: record))
                """)
    }

    private static var legend: [HTML] {
        LabRecord.order.map { "<li>\(cell($0, isOurs: false)) \($0.meaning)</li>" }
    }

    private static func name(of row: LabRecord.RecordedRow) -> HTML {
        "<span title=\"\(row.summary)\">\(row.name.description)</span>"
    }

    /// Whether Countersign's own protocol held.
    private static func verdict(on record: LabRecord) -> HTML {
        let broken = record.broken
        guard broken.isEmpty else {
            return ConsoleMarkup.alert(
                "Attacks on Countersign’s own protocol succeeded:",
                points: broken.map { "<li>\($0.row.description): \($0.attack.description)</li>" })
        }
        guard record.rows.contains(where: \.name.isOurs) else {
            return ConsoleMarkup.notice("Countersign’s own protocol was not attacked.", tone: .warning)
        }
        let ours = record.rows.filter(\.name.isOurs)
        guard ours.allSatisfy({ $0.marks.contains(.held) }) else {
            return ConsoleMarkup.notice("No attack applied to Countersign’s own protocol.", tone: .warning)
        }
        guard record.count(of: .notStaged) == 0 else {
            return ConsoleMarkup.notice("Some attacks could not be staged.", tone: .warning)
        }
        // Attacks that apply to none of our rows are not counted.
        let count = record.attacks.indices.count { place in ours.contains { $0.marks[place] == .held } }
        return ConsoleMarkup.notice(
            "Countersign’s own protocol held against \(count) attacks.", tone: .good)
    }

    /// That schemes of others fall is what the lab shows, and no alarm.
    private static func cell(_ mark: LabRecord.Mark, isOurs: Bool) -> HTML {
        let tone: ConsoleMarkup.Tone =
            switch mark {
            case .held: .good
            case .fell: isOurs ? .bad : .warning
            case .notStaged: .warning
            case .notApplicable: .quiet
            }
        return ConsoleMarkup.badge(mark.rawValue, tone: tone)
    }

    private static func skipped(in record: LabRecord) -> HTML {
        guard !record.skippedRows.isEmpty else { return .none }
        let rows: [[HTML]] = record.skippedRows.map { ["\($0.name.description)", "\($0.reason)"] }
        return ConsoleMarkup.section(
            "Not run", id: "not-run",
            body: ConsoleMarkup.table(
                "Schemes that were not attacked", head: ["Scheme", "Why"], rows: rows, empty: ""))
    }
}
