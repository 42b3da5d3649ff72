/// The program's version, as `version`, manual pages and metrics state it.
package enum Product {
    package static let version = "0.1.0"
    /// When this version's manual pages changed last.
    package static let date = "2026-11-26"
}
