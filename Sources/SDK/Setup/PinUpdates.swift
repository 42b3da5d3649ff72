import CountersignTrust

/// Who may replace the pins while the app runs. Source: docs/protocol.md, "Pin manifests".
public enum PinUpdates: Sendable {
    /// Nobody: those that the client was made with stay.
    case none
    /// Whoever holds one of the offline keys.
    case signed(Signers)

    /// Whose manifests are taken up.
    public struct Signers: Sendable {
        /// Whom manifests have to be for.
        public var app: String
        /// Ed25519 public keys of 32 bytes: at least the one in use and the next one.
        public var keys: [[UInt8]]
        /// Which manifest the client's own trust stands for: older ones are refused. 0 where it is older than all of them.
        public var version: Int
        /// Where the last manifest is kept.
        public var store: any ManifestStore

        /// As above. `store` is a `ManifestFile` in the app's own folder, as a rule.
        public init(app: String, keys: [[UInt8]], version: Int = 0, store: any ManifestStore) {
            self.app = app
            self.keys = keys
            self.version = version
            self.store = store
        }
    }
}
