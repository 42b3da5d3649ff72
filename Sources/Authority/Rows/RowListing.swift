import CountersignWire

/// A row as a listing for administrators has it. What decides about a caller refuses an altered row; a
/// listing goes on, and says so: it is what one needs to find out what happened.
package enum ListedRow<Row: Sendable & Equatable>: Sendable, Equatable {
    case row(Row)
    case altered(AlteredRow)

    package var row: Row? { if case .row(let row) = self { row } else { nil } }
    package var altered: AlteredRow? { if case .altered(let altered) = self { altered } else { nil } }
}

/// A row without a valid tag, or of a group that does not add up. Only its name is told: what it says is not
/// ours.
package struct AlteredRow: Sendable, Equatable {
    package var table: String
    /// As commands name it: a session's id, a device's, or a number.
    package var row: String
    /// The account that the row names.
    package var account: Int64

    package init(_ table: AuthenticatedTable, row: String, account: Int64) {
        self.table = table.name
        self.row = row
        self.account = account
    }
}

/// Reads for administrators that altered rows do not stop.
package protocol ListingStore: Sendable {
    /// By number, those above `number`, removed ones included.
    func listing(
        of app: AppName, after number: Int64, limit: Int
    ) throws(OperationalError) -> [ListedRow<Account>]
    func listing(ofAccount number: Int64) throws(OperationalError) -> ListedRow<Account>?
    /// In the order of ``SessionStore/sessions(of:limit:)``.
    func sessionListing(of app: AppName, limit: Int) throws(OperationalError) -> [ListedRow<StoredSession>]
    /// The altered rows among the account's devices, sessions and upload tickets, which other reads leave
    /// out.
    func alteredRows(of account: Int64) throws(OperationalError) -> [AlteredRow]
}
