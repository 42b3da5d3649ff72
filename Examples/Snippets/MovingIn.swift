// Moves data of older versions of the app into the vault and erases it at its old place.
import CountersignVault

/// A settings file with a stored password, as an app may have on Linux. For Apple's platforms the package has
/// `DefaultsCredentials` and `KeychainCredentials`.
struct OldSettings: RememberedCredentialSource {
    let file: SettingsFile

    func read() -> VaultReadResult<[RememberedCredential]> {
        guard let settings = file.load() else { return .absent }
        var remains = LegacyDefaultsItems(userName: settings["user"], password: settings["password"])
        remains.remembers = settings["remember"] == "1" ? LegacyDefaultsItems.Switch.on : .off
        remains.userName = remains.userName?.lowercased()
        do {
            return .value(
                try remains.credentials(
                    encodedAs: LegacyDefaultsItems.PasswordEncoding.base64, service: "com.example.app"))
        } catch {
            return .failed("\(error)")
        }
    }

    func erase(_ remembered: RememberedCredential) throws(VaultError) { file.remove(remembered.key) }
}

/// Called at each start: cheap when nothing is left to move.
func moveIn(_ settings: SettingsFile, to vault: Vault) async throws {
    let report: VaultMigration.Report = try await VaultMigration(
        from: OldSettings(file: settings), into: vault
    ).run()
    print("moved \(report.moved), the vault's were newer: \(report.superseded), erased: \(report.discarded)")
    for (key, reason) in report.left { print("\(key) is still there: \(reason)") }
    assert(report != VaultMigration.Report())
}

/// Decides about one item, as only the app can.
func device(_ token: [UInt8], keptUnder key: String) throws -> RememberedCredential {
    guard !token.isEmpty else { return RememberedCredential(key: key, fate: .discard) }
    let name = try ItemName(service: "com.example.app", account: "device")
    let remembered = RememberedCredential(key: key, fate: .move(.bytes(token), to: name))
    if case .leave(let reason) = remembered.fate { print(reason) }
    return remembered
}

/// A plain password whose user turned remembering off: the migration erases it.
let turnedOff = LegacyDefaultsItems(userName: "anna", remembers: .off, password: "pass")
let plain = LegacyDefaultsItems.PasswordEncoding.plain

/// The app's own.
protocol SettingsFile: Sendable {
    func load() -> [String: String]?
    func remove(_ key: String)
}
