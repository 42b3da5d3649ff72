import CountersignAuthority
import CountersignSQL
import CountersignWire

extension FailingStore {
    func listing(
        of app: AppName, after number: Int64, limit: Int
    ) throws(OperationalError) -> [ListedRow<Account>] {
        try base.listing(of: app, after: number, limit: limit)
    }
    func listing(ofAccount number: Int64) throws(OperationalError) -> ListedRow<Account>? {
        try base.listing(ofAccount: number)
    }
    func sessionListing(of app: AppName, limit: Int) throws(OperationalError) -> [ListedRow<StoredSession>] {
        try base.sessionListing(of: app, limit: limit)
    }
    func alteredRows(of account: Int64) throws(OperationalError) -> [AlteredRow] {
        try base.alteredRows(of: account)
    }
}
