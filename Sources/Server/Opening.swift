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

    /// Another way to the deployment's store, for the meter, and for the writer: while a disk takes what they write, whoever needs
    /// a key does not wait behind it.
    func openStore() -> any Store {
        switch store {
        case .sqlite(let path): SQLiteStore(path: path, inspecting: .header)
        }
    }
}
