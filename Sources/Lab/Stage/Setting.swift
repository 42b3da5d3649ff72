/// Names, keys and certificates of a run: drawn anew each time, so that nothing can be known beforehand.
package enum Setting {
    /// The host that apps call.
    package static let host = "bank.test"
    /// The app, as the gateway knows it.
    package static let app = "bank"
    /// Its version.
    package static let version = "2.0"
    package static let platform = "ios"
}
