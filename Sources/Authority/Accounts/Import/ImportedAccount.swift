import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One account of an existing backend, as `account import` reads it from a row.
package struct ImportedAccount: Sendable {
    /// The line in the file, from 1.
    package var line: Int
    package var name: AccountName
    package var userID: BackendUserID
    package var rung: Rung
    /// What the backend keeps for the rung, unchanged. The import wraps it at once and does not store it.
    package var value: Secret
}

/// The backend's own number of a user, which legacy logins answer with. Source: docs/protocol.md, "The
/// login ladder".
package struct BackendUserID: Sendable, Hashable {
    /// 1 or more; 0 means "refused" to the clients.
    package let number: Int64

    /// Decimal digits without a sign or a leading zero; nil for anything else.
    package init?(_ text: Span<UInt8>) {
        guard (1...19).contains(text.count), text[0] != UInt8(ascii: "0") else { return nil }
        var number: Int64 = 0
        for index in 0..<text.count {
            guard ASCII.isDigit(text[index]) else { return nil }
            let (tens, first) = number.multipliedReportingOverflow(by: 10)
            let (sum, second) = tens.addingReportingOverflow(Int64(text[index] - UInt8(ascii: "0")))
            guard !first, !second else { return nil }
            number = sum
        }
        self.number = number
    }
}

/// The reason why a line of an import is rejected.
package struct ImportError: Error, Sendable, Equatable, CustomStringConvertible {
    /// From 1, as editors count.
    package var line: Int
    /// The column or member; nil if the error concerns the whole line.
    package var column: ImportColumn?
    /// Never contains the value, which may be a password.
    package var reason: String

    package var description: String {
        let place = column.map { "line \(line), \($0.rawValue)" } ?? "line \(line)"
        return "\(place): \(reason)"
    }
}

/// The columns of a CSV file, and the members of each JSON line.
package enum ImportColumn: String, Sendable, CaseIterable {
    case name
    case userID = "user_id"
    case rung
    case value
}

/// The four texts of a row, before they are parsed.
struct ImportRow {
    let line: Int
    private var texts: [ImportColumn: [UInt8]] = [:]

    init(line: Int) { self.line = line }

    /// Each column is set once: the header check and the JSON reader ensure that.
    mutating func set(_ column: ImportColumn, to text: [UInt8]) { texts[column] = text }

    /// Parses the texts; the error names the first invalid one.
    func account() throws(ImportError) -> ImportedAccount {
        let name = try name()
        let userID = try userID()
        let rung = try rung()
        return ImportedAccount(line: line, name: name, userID: userID, rung: rung, value: try value(of: rung))
    }

    private func name() throws(ImportError) -> AccountName {
        let typed = try text(.name)
        do {
            return try AccountName(normalizing: typed.span)
        } catch {
            throw importError(in: .name, reason: error.description)
        }
    }

    private func userID() throws(ImportError) -> BackendUserID {
        let digits = try text(.userID)
        guard let userID = BackendUserID(digits.span) else {
            throw importError(in: .userID, reason: "expected a whole number from 1 to \(Int64.max)")
        }
        guard !AccountIdentity.clientNumbers.contains(userID.number) else {
            let kept = AccountIdentity.clientNumbers
            throw importError(
                in: .userID,
                reason: "\(kept.lowerBound) to \(kept.upperBound) are kept for accounts without a user id")
        }
        return userID
    }

    private func rung() throws(ImportError) -> Rung {
        let word = try text(.rung)
        guard let rung = Rung(rawValue: String(decoding: word, as: UTF8.self)) else {
            let known = Rung.allCases.map(\.rawValue).joined(separator: ", ")
            throw importError(in: .rung, reason: "expected one of \(known)")
        }
        return rung
    }

    private func value(of rung: Rung) throws(ImportError) -> Secret {
        let bytes = try text(.value)
        if case .invalid(let expected) = rung.validateStoredValue(bytes.span) {
            throw importError(in: .value, reason: "expected \(expected) for the rung \(rung.rawValue)")
        }
        return Secret(copying: bytes.span)
    }

    private func text(_ column: ImportColumn) throws(ImportError) -> [UInt8] {
        guard let text = texts[column] else { throw importError(in: column, reason: "is missing") }
        return text
    }

    private func importError(in column: ImportColumn, reason: String) -> ImportError {
        ImportError(line: line, column: column, reason: reason)
    }
}
