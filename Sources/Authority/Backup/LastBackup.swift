import CountersignWire

/// The last verified backup of a data folder, which a small file there records: the store itself cannot,
/// since a record of the backup would come after what the backup contains.
package struct LastBackup: Sendable, Equatable {
    /// When the store was as the backup has it, in whole Unix seconds.
    package let made: Int64
    /// Bytes of the backup.
    package let bytes: Int64
    /// The id of the key that opens it, in hexadecimal.
    package let key: String
    /// The head of the audit log that it contains.
    package let auditHead: String

    /// A deployment without a backup of this age is to be backed up.
    package static let longestAge: Int64 = 7 * 86_400

    package init(made: Int64, bytes: Int64, key: String, auditHead: String) {
        (self.made, self.bytes, self.key, self.auditHead) = (made, bytes, key, auditHead)
    }

    /// Whether it is too old at `now`, in whole Unix seconds, or from the future: then a clock was ahead when
    /// it was made, and its age is not known.
    package func isOverdue(at now: Int64) -> Bool {
        now - made > LastBackup.longestAge || made - now > LastBackup.mostAhead
    }

    /// Seconds by which two clocks of a deployment may differ.
    private static let mostAhead: Int64 = 300

    /// Nil for anything but what ``json`` is.
    fileprivate init?(_ text: [UInt8]) {
        guard let document = try? JSONReader.read(text), document.root.members?.count == 4,
            let made = document.root["made"].flatMap({ document.integer($0, in: 0...(1 << 53)) }),
            let bytes = document.root["bytes"].flatMap({ document.integer($0, in: 0...(1 << 53)) }),
            let key = document.root["key"]?.string, let auditHead = document.root["audit_head"]?.string
        else { return nil }
        self.init(made: Int64(made), bytes: Int64(bytes), key: key, auditHead: auditHead)
    }

    fileprivate var json: JSONValue {
        [
            "made": .integer(made), "bytes": .integer(bytes), "key": .string(key),
            "audit_head": .string(auditHead),
        ]
    }

    private static func file(inFolder folder: String) -> RecordFile {
        RecordFile("last-backup", inFolder: folder, mostBytes: 4_096)
    }

    /// That of the data folder with that path; nil if none was made. Throws if the record is damaged.
    package static func read(inFolder folder: String) throws(OperationalError) -> LastBackup? {
        let file = file(inFolder: folder)
        guard let text = try file.read() else { return nil }
        guard let backup = LastBackup(text) else {
            throw file.damage("expected `made`, `bytes`, `key` and `audit_head`")
        }
        return backup
    }

    /// Records it in place of the one before.
    package func record(in folder: DataFolder) throws(OperationalError) {
        try LastBackup.file(inFolder: folder.path).replace(by: json.bytes)
    }
}
