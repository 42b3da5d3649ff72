import Countersign
import Foundation

/// What the app has to know about its server: the contents of `Notes.json`.
///
/// `countersign release add` prints `key_id`, `secret`, `authority_key` and `next_authority_key` (optional).
/// They are in every copy of the app, so they protect no user's data. `pins` names the server's public key,
/// `backup_pins` a key that is kept elsewhere.
struct NotesSettings: Decodable {
    let url: String
    let app: String
    let keyID: String
    let secret: String
    let authorityKey: String
    let nextAuthorityKey: String?
    let pins: [String]
    let backupPins: [String]

    private enum CodingKeys: String, CodingKey {
        case url, app, secret, pins
        case keyID = "key_id"
        case authorityKey = "authority_key"
        case nextAuthorityKey = "next_authority_key"
        case backupPins = "backup_pins"
    }
}

extension NotesSettings {
    /// Throws ``SettingsError`` with a sentence that says what is wrong in the file.
    init(contentsOf file: URL) throws(SettingsError) {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            throw SettingsError(
                file: file.path, problem: "cannot be read; Examples/Notes/README.md says how to make it")
        }
        do {
            self = try JSONDecoder().decode(NotesSettings.self, from: data)
        } catch {
            throw SettingsError(file: file.path, problem: NotesSettings.text(for: error))
        }
    }

    /// The client for this server: one for the whole app.
    ///
    /// With a `presence`, the device's signing key is released only while the user is present, and the
    /// session of an earlier start is locked until then. Without it, the key is stored with the session.
    func makeClient(
        vault: VaultPlace, device: DeviceDescription, presence: UserPresence?
    ) throws -> CountersignClient {
        var options = CountersignOptions()
        options.device = device
        options.userAgent = "notes/1.0"
        if let presence { options.deviceKey = .boundToPresence(presence) }
        return try CountersignClient(
            release: ReleaseKey(
                id: keyID, secret: secret, authorityKey: authorityKey, nextAuthorityKey: nextAuthorityKey,
                app: app),
            baseURL: url,
            vault: vault,
            trust: Trust([.host(ofBaseURL: url, pins: pins, backups: backupPins)], others: .refused),
            options: options)
    }

    private static func text(for error: any Error) -> String {
        switch error as? DecodingError {
        case .keyNotFound(let key, _): "`\(key.stringValue)` is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            "`\(context.codingPath.first?.stringValue ?? "the file")` is of another type than expected"
        default: "it is not JSON"
        }
    }
}

/// Why there are no usable settings.
struct SettingsError: Error, CustomStringConvertible {
    let file: String
    let problem: String

    var description: String { "\(file): \(problem)" }
}
