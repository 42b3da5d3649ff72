import CountersignLab
import CountersignWire

/// What `lab --list` tells: the rows and attacks there are.
enum LabCatalogue {
    static func json(_ selection: Selection) -> JSONValue {
        let rows = selection.rows.map { row -> JSONValue in
            ["scheme": .string(row.name.description), "summary": .string(row.summary)]
        }
        let attacks = selection.attacks.map { attack -> JSONValue in
            [
                "name": .string(attack.name.description), "column": .string(attack.column.rawValue),
                "sentence": .string(attack.sentence),
            ]
        }
        return ["rows": .array(rows), "attacks": .array(attacks)]
    }

    static func text(_ selection: Selection) -> String {
        let rows = Table.text(["SCHEME", "WHAT"], selection.rows.map { [$0.name.description, $0.summary] })
        let attacks = Table.text(
            ["ATTACK", "COLUMN", "WHAT"],
            selection.attacks.map { [$0.name.description, $0.column.rawValue, $0.sentence] })
        return "\(rows)\n\n\(attacks)"
    }
}
