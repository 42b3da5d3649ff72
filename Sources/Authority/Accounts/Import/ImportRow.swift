import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The four texts of a row, before they mean anything.
struct ImportRow {
    let line: Int
    private var texts: [ImportColumn: [UInt8]] = [:]

    init(line: Int) { self.line = line }

    /// Each column comes once: the header and the JSON reader see to that.
    mutating func set(_ column: ImportColumn, _ text: [UInt8]) { texts[column] = text }

    /// What the texts mean; the first of them that means nothing is named.
    func account() throws(ImportProblem) -> ImportedAccount {
        let name = try name()
        let userID = try userID()
        let rung = try rung()
        return ImportedAccount(line: line, name: name, userID: userID, rung: rung, value: try value(of: rung))
    }

    private func name() throws(ImportProblem) -> AccountName {
        let typed = try text(.name)
        do throws(AccountName.Problem) {
            return try AccountName(normalizing: typed.span)
        } catch {
            throw problem(.name, error.description)
        }
    }

    private func userID() throws(ImportProblem) -> BackendUserID {
        let digits = try text(.userID)
        guard let userID = BackendUserID(digits.span) else {
            throw problem(.userID, "expected a whole number from 1 to \(Int64.max)")
        }
        return userID
    }

    private func rung() throws(ImportProblem) -> Rung {
        let word = try text(.rung)
        guard let rung = Rung(rawValue: String(decoding: word, as: UTF8.self)) else {
            let known = Rung.allCases.map(\.rawValue).joined(separator: ", ")
            throw problem(.rung, "expected one of \(known)")
        }
        return rung
    }

    private func value(of rung: Rung) throws(ImportProblem) -> Secret {
        let bytes = try text(.value)
        if case .notThis(let expected) = rung.canKeep(bytes.span) {
            throw problem(.value, "expected \(expected) for the rung \(rung.rawValue)")
        }
        return Secret(copying: bytes.span)
    }

    private func text(_ column: ImportColumn) throws(ImportProblem) -> [UInt8] {
        guard let text = texts[column] else { throw problem(column, "is missing") }
        return text
    }

    private func problem(_ column: ImportColumn, _ reason: String) -> ImportProblem {
        ImportProblem(line: line, column: column, reason: reason)
    }
}
