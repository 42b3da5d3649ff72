import CLinux
import CountersignGate
import CountersignWire
import Glibc

/// Opens the files of the server that policy values name. Parties that may not read the server's files can
/// change a policy. A value must therefore neither reveal the content of a file nor block its reader.
package struct PolicyFiles: Sendable {
    /// Whether a policy value may name a file.
    package enum Naming: Sendable {
        case allowed
        /// Over the API and the console: their callers would learn from the response which files exist.
        case refused
    }

    /// Every file must be below this folder, also after links are followed.
    package let folder: String
    package let naming: Naming

    package init(folder: String, naming: Naming = .allowed) {
        (self.folder, self.naming) = (folder, naming)
    }

    /// Opens a regular file below the folder. Never waits for the other end of a pipe, and never opens a
    /// device.
    func open(_ path: String) throws(OperationalError) -> FileDescriptor {
        // O_PATH does not open the file itself, so the check has no effect on it.
        let number = Glibc.open(path, cs_open_path | O_CLOEXEC)
        guard number >= 0 else {
            throw OperationalError(.failed, message: "cannot be opened: \(String(cString: strerror(errno)))")
        }
        let place = FileDescriptor(owning: number)
        try requireBelow(place)
        var status = stat()
        guard fstat(place.number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw OperationalError(.failed, message: "is not a regular file")
        }
        let opened = Glibc.open(
            "/proc/self/fd/\(place.number)", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard opened >= 0 else {
            throw OperationalError(.failed, message: "cannot be opened: \(String(cString: strerror(errno)))")
        }
        return FileDescriptor(owning: opened)
    }

    /// Checks the kernel's path of the open file, which contains no links.
    private func requireBelow(_ place: FileDescriptor) throws(OperationalError) {
        let root = PolicyFiles.resolved(folder)
        let found = PolicyFiles.resolved("/proc/self/fd/\(place.number)")
        guard let root, let found, found.hasPrefix(root == "/" ? root : root + "/") else {
            throw OperationalError(
                .failed, message: "is not below \(folder), the folder that --policy-files names")
        }
    }

    private static func resolved(_ path: String) -> String? {
        guard let text = realpath(path, nil) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }
}
