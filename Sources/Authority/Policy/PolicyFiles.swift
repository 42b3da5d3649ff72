import CLinux
import CountersignGate
import CountersignWire
import Glibc

/// Opens the files of the server that values of policies name. A policy can be changed by parties that may
/// not read the server's files, so that a value must neither tell what is in a file nor hold its reader.
package struct PolicyFiles: Sendable {
    /// Whether a policy may be given a value that names a file.
    package enum Naming: Sendable {
        case allowed
        /// Over the API and the console: their callers would learn from the answer which files are there.
        case refused
    }

    /// Every file must be below it, also after links were followed.
    package let folder: String
    package let naming: Naming

    package init(folder: String, naming: Naming = .allowed) {
        (self.folder, self.naming) = (folder, naming)
    }

    /// Opens a regular file below the folder. Waits for no other side of a pipe, and opens no device.
    func open(_ path: String) throws(OperationalError) -> FileDescriptor {
        // Does not open what is there, so that a look at it has no effect.
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

    /// Compares the path that the kernel has for the open file, in which no link is left.
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
