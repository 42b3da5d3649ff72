import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One account of an old backend: what `account import` reads a row into.
package struct ImportedAccount: Sendable {
    /// Where it stands in the file, from 1 on.
    package var line: Int
    package var name: AccountName
    package var userID: BackendUserID
    package var rung: Rung
    /// What the old backend keeps for the rung, as it came. To be wrapped at once, and not kept.
    package var value: Secret
}

/// The old backend's own number of a user, which legacy logins answer with. Source: docs/protocol.md, "The login ladder".
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

/// Why a line of an import is not taken.
package struct ImportProblem: Error, Sendable, Equatable, CustomStringConvertible {
    /// From 1 on, as editors count.
    package var line: Int
    /// Which column or member; nil where it is the line as a whole.
    package var column: ImportColumn?
    /// Never holds the value, which may be a password.
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
