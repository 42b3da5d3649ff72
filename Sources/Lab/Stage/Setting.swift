/// What is the same in every run. Keys, certificates and passwords are drawn anew each time.
package enum Setting {
    /// The host that apps call.
    package static let host = "bank.test"
    /// The app, as the gateway knows it.
    package static let app = "bank"
    /// Its version.
    package static let version = "2.0"
    package static let platform = "ios"
}
