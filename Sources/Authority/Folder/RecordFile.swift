import CountersignWire
import Glibc

/// A small file of the data folder in which a command notes its result, for other commands and the console.
/// It is no secret, and nothing is decided by it.
package struct RecordFile: Sendable {
    package let path: String
    private let mostBytes: Int

    /// `folder` is the path of the data folder.
    package init(_ name: String, inFolder folder: String, mostBytes: Int) {
        (path, self.mostBytes) = ("\(folder)/\(name)", mostBytes)
    }

    /// Nil if there is no such file.
    package func read() throws(OperationalError) -> [UInt8]? {
        // Without waiting for the writer of a pipe: an event loop reads records, too.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        if file < 0, errno == ENOENT { return nil }
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let bytes = try FileReader.bytes(of: file, limit: mostBytes, name: path)
        else { throw damage("expected a file of at most \(mostBytes) bytes") }
        return bytes
    }

    /// Writes the whole record, or leaves the one before.
    package func replace(by bytes: [UInt8]) throws(OperationalError) {
        try KeyFile.replace(path, by: bytes)
        KeyFile.syncFolder(of: path)
    }

    package func damage(_ reason: String) -> OperationalError {
        OperationalError(
            .failed, message: "\(path): it is damaged: \(reason); what writes it replaces it the next time")
    }
}
