import CountersignAuthority
import CountersignSQLite
import CountersignWire

extension Configuration {
    /// The data folder, its store and its master key, as `serve` and every administrative command open them.
    package func openDeployment(
        absence: DataFolder.Absence, environment: [String: String]
    ) throws(Fault) -> Deployment {
        let folder = try DataFolder(data, absence: absence)
        switch store {
        case .sqlite(let path):
            return try Deployment(folder: folder, store: SQLiteStore(path: path), environment: environment)
        }
    }

    /// The meter's own way to the store: while a disk takes its figures, whoever needs a key does not wait behind them.
    func openMeter() -> any MeterStore {
        switch store {
        case .sqlite(let path): SQLiteStore(path: path)
        }
    }
}
