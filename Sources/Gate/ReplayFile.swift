import CountersignSchemes
import CountersignWire

/// The replay guard of one machine: a memory-mapped file, so that what was admitted stays admitted across `kill -9`.
package final class ReplayFile: ReplayGuard, @unchecked Sendable {
    /// Names one file for life; the authority remembers it, so that a file that vanished is missed.
    package struct FileID: Sendable, Equatable, CustomStringConvertible {
        let bytes: [UInt8]

        /// Nil unless it is 32 lower-case hexadecimal digits, as `description` gives them.
        package init?(_ text: String) { fatalError("follows in the next commit") }
        package var description: String { fatalError("follows in the next commit") }
    }

    /// What was found at opening; the server logs it.
    package struct OpenReport: Sendable, Equatable {
        package enum Found: Sendable, Equatable {
            /// The first start ever.
            case nothing
            case intact
            /// The machine has been restarted since: records may have been lost with its memory.
            case rebooted
            /// The file that was expected is gone, or is another.
            case missing
            case corrupt
        }

        package var found: Found
        /// Signatures made at or before this (Unix seconds) are refused; nil where there is no such bound.
        package var floor: Int64?
        package var id: FileID
    }

    package struct Settings: Sendable {
        /// Seconds for which an entry must be remembered: the widest window of any policy, both sides, and slack.
        package var retention = 2 * 300 + 60
        /// Entries a new file has room for; it doubles as needed.
        package var entries = 1 << 16
        /// Beyond this it refuses: 16 bytes each.
        package var mostEntries = 1 << 26
        package var bootIDPath = "/proc/sys/kernel/random/boot_id"

        package init() {}
    }

    package let report: OpenReport

    package init(path: String, expecting: FileID?, settings: Settings = Settings(), now: Int64) throws(Fault) {
        fatalError("follows in the next commit")
    }

    /// Changes for how long entries are remembered. Widening cannot bring back what was dropped; the floor, kept in the
    /// file, refuses what that could have been.
    package func setRetention(_ seconds: Int) {}

    nonisolated(nonsending) package func insert(_ entry: ReplayEntry) async throws(Refusal) {
        fatalError("follows in the next commit")
    }
}
