import CountersignSeal
import CountersignWire

/// Where the master key comes from, the first that there is: the environment, a systemd credential, a file of mode
/// 0600 in the data folder, which the first use makes.
package struct MasterKeySource: Sendable {
    private let environment: [String: String]
    private let folder: DataFolder

    package static let variable = "COUNTERSIGN_MASTER_KEY"
    private static let expected = "expected 32 bytes as 64 hexadecimal digits or as base64url"

    package init(environment: [String: String], folder: DataFolder) {
        self.environment = environment
        self.folder = folder
    }

    /// Nil where no source has one.
    package func find() throws(Fault) -> MasterKey? {
        if let text = environment[MasterKeySource.variable] {
            let bytes = Array(text.utf8)
            guard let key = MasterKey(text: bytes.span) else {
                throw Fault(.failed, "\(MasterKeySource.variable): \(MasterKeySource.expected)")
            }
            return key
        }
        if let credentials = environment["CREDENTIALS_DIRECTORY"], !credentials.isEmpty,
            let key = try read("\(credentials)/countersign-master-key")
        {
            return key
        }
        return try read(folder.masterKey)
    }

    /// For a deployment that has never sealed anything: the key there is, or a new one in the folder.
    package func findOrMake() throws(Fault) -> MasterKey {
        if let key = try find() { return key }
        guard let key = MasterKey(MasterKey.random()) else { throw Fault(.failed, "libsodium did not start") }
        try KeyFile.make(folder.masterKey, key.text())
        guard let kept = try read(folder.masterKey) else {
            throw Fault(.unreachable, "\(folder.masterKey): vanished while it was made")
        }
        return kept
    }

    private func read(_ path: String) throws(Fault) -> MasterKey? {
        guard let text = try KeyFile.read(path) else { return nil }
        guard let key = text.withExposedBytes({ MasterKey(text: $0) }) else {
            throw Fault(.failed, "\(path): \(MasterKeySource.expected)")
        }
        return key
    }
}
