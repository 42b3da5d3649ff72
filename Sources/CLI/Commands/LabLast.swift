import CountersignAuthority
import CountersignWire

extension Command {
    package static let labLast = Command(
        words: ["lab", "last"], summary: "show the verdicts of the last run of the lab that was recorded",
        options: [.data, .json],
        notes: """
            `countersign lab --record` keeps the verdicts of a run in the data folder, for this command and \
            for the console. Exit status 1 if no run was recorded.
            """
    ) { (run) throws(OperationalError) in
        let folder = try run.dataFolder()
        try DataFolder.requireThere(folder)
        let record = try LabRecord.read(inFolder: folder)
        try run.print(["run": record?.json ?? .null]) {
            guard let record else { return "no run was recorded: countersign lab --record --data \(folder)" }
            let rows = record.rows.map { row in
                [row.name.description] + LabRecord.order.map { mark in "\(row.marks.count { $0 == mark })" }
            }
            return """
                \(TimeText.text(record.began)), version \(record.version), \(record.seconds) s; \
                attacks: \(record.attacks.count), schemes: \(record.rows.count)

                \(Table.text(head: ["SCHEME"] + LabRecord.order.map { $0.word.uppercased() }, rows: rows))
                """
        }
        return record == nil ? .failed : .success
    }
}

extension LabRecord {
    /// In which marks are counted.
    static let order: [LabRecord.Mark] = [.held, .fell, .notStaged, .notApplicable]
}

extension LabRecord {
    private static func file(inFolder folder: String) -> RecordFile {
        RecordFile("lab-record", inFolder: folder, mostBytes: mostBytes)
    }

    /// That of the data folder with that path; nil if no run was recorded. Throws if the record is damaged.
    static func read(inFolder folder: String) throws(OperationalError) -> LabRecord? {
        let file = file(inFolder: folder)
        guard let text = try file.read() else { return nil }
        do {
            return try LabRecord(reading: text)
        } catch {
            throw file.damage(error.message)
        }
    }

    /// Records it in place of the one before.
    package func record(in folder: DataFolder) throws(OperationalError) {
        try LabRecord.file(inFolder: folder.path).replace(by: json.bytes)
    }
}
