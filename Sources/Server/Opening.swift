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
}
