import CountersignAuthority
import CountersignWire
import Glibc

/// What the machine gives: time, room, and files that only their owner reads.
extension Doctor {
    /// Seconds that the store's newest time may be ahead of the clock, and the backend's beside it.
    private static let tolerance: Int64 = 10
    private static let mebibyte: UInt64 = 1 << 20

    mutating func checkClock(_ deployment: Deployment?, upstreamDate: Int64?) {
        var isWell = true
        if let deployment, let newest = try? newestTime(in: deployment), newest > now + Doctor.tolerance {
            isWell = false
            add(
                .clock, verdict: .error,
                message: "the clock says \(CivilTime.rfc3339Text(now)), and the store has a change of "
                    + CivilTime.rfc3339Text(newest),
                expected: "a clock that is not behind the store", command: "timedatectl set-ntp true")
        }
        if let date = upstreamDate, abs(date - now) > Doctor.tolerance {
            isWell = false
            add(
                .clock, verdict: .warning,
                message: "the clock is \(abs(date - now)) s \(date > now ? "behind" : "ahead of") that of "
                    + "the backend",
                expected: "at most \(Doctor.tolerance) s", command: "timedatectl set-ntp true")
        }
        if isWell {
            let others =
                (deployment == nil ? [] : ["the store"]) + (upstreamDate == nil ? [] : ["the backend"])
            add(
                .clock,
                message: others.isEmpty
                    ? "nothing to compare the clock with"
                    : "the clock agrees with \(others.joined(separator: " and "))")
        }
    }

    /// Of the audit log and of the meter.
    private func newestTime(in deployment: Deployment) throws(OperationalError) -> Int64 {
        var newest = try deployment.newestAuditTime()
        for entry in try deployment.store.meter(since: now / 86_400 - 1) {
            newest = max(newest, entry.lastSeen)
        }
        return newest
    }

    mutating func checkDisk() {
        guard let room = DiskRoom(at: configuration.data) else { return }
        let (free, text) = (room.freeBytes, room.text)
        var status = stat()
        let store = configuration.store.file.map { stat($0, &status) == 0 ? UInt64(status.st_size) : 0 } ?? 0
        if room.isScarce {
            add(
                .disk, verdict: .error, message: text,
                expected: "at least \(DiskRoom.leastBytes / Doctor.mebibyte) MiB",
                command: Doctor.command("df", configuration.data))
        } else if free < 1024 * Doctor.mebibyte || free < 2 * store {
            let expected = max(1024, 2 * store / Doctor.mebibyte)
            add(
                .disk, verdict: .warning, message: text,
                expected: "\(expected) MiB, for the write-ahead log and for backups",
                command: Doctor.command("df", configuration.data))
        } else {
            add(.disk, message: text)
        }
        if let files = room.freeFiles, files < 1_000 {
            add(
                .disk, verdict: .warning, message: "\(files) files may still be made there",
                expected: "at least 1000", command: Doctor.command("df", "-i", configuration.data))
        }
    }

    mutating func checkPermissions() {
        var folder = stat()
        guard stat(configuration.data, &folder) == 0 else { return }
        let count = findings.count
        checkMode(folder, of: configuration.data, expected: "700")
        for path in Doctor.files(in: configuration.data) {
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            if !path.hasSuffix("/certificate.pem") { checkMode(status, of: path, expected: "600") }
            if status.st_uid != folder.st_uid {
                add(
                    .permissions, verdict: .error,
                    message: "\(path): belongs to user \(status.st_uid), and its folder to \(folder.st_uid)",
                    expected: "one owner, the user that the gateway runs as",
                    command: Doctor.command("chown", "\(folder.st_uid):\(folder.st_gid)", path))
            }
        }
        if findings.count == count {
            add(.permissions, message: "only the owner reads \(configuration.data)")
        }
    }

    private mutating func checkMode(_ status: stat, of path: String, expected: String) {
        guard status.st_mode & 0o077 != 0 else { return }
        add(
            .permissions, verdict: .error,
            message: "\(path): mode \(String(status.st_mode & 0o7777, radix: 8)) lets others in",
            expected: "mode \(expected)", command: Doctor.command("chmod", expected, path))
    }

    /// The files of the folder and of those in it; a thousand at most.
    private static func files(in path: String) -> [String] {
        var paths: [String] = []
        for name in names(in: path) {
            let place = "\(path)/\(name)"
            var status = stat()
            guard lstat(place, &status) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFDIR {
                paths += names(in: place).map { "\(place)/\($0)" }
            } else {
                paths.append(place)
            }
        }
        return Array(paths.sorted().prefix(1_000))
    }

    private static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while names.count < 1_000, let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}

/// The room that is left on the file system of a folder.
struct DiskRoom {
    /// With less, writes are about to fail.
    static let leastBytes: UInt64 = 64 << 20

    private let path: String
    /// What users other than the superuser may still write.
    let freeBytes: UInt64
    /// Files that may still be made; nil if the file system does not count them.
    let freeFiles: UInt64?

    /// Nil if it cannot be found out.
    init?(at path: String) {
        var room = statvfs()
        guard statvfs(path, &room) == 0 else { return nil }
        let (blocks, size) = (UInt64(room.f_bavail), UInt64(room.f_frsize))
        let (bytes, isTooMuch) = blocks.multipliedReportingOverflow(by: size)
        freeBytes = isTooMuch ? .max : bytes
        freeFiles = room.f_files > 0 ? UInt64(room.f_favail) : nil
        self.path = path
    }

    /// For people, in whole mebibytes.
    var text: String { "\(freeBytes >> 20) MiB are free for \(path)" }

    var isScarce: Bool { freeBytes < DiskRoom.leastBytes }
}
