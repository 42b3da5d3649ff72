import CountersignCLI
import CountersignWire
import Glibc

/// A file that a command writes in the end. It is opened at the start: that there is no such folder is not to
/// be learnt after minutes.
final class OutputFile {
    private let file: Int32
    private let path: String

    /// What stands in it stays until ``replace(_:)``.
    init(_ path: String) throws(OperationalError) {
        self.path = path
        file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw Errno.error("\(path): cannot be written", kind: .usage) }
    }

    deinit { close(file) }

    /// Puts the text in the place of what stood there.
    func replace(_ text: String) throws(OperationalError) {
        guard ftruncate(file, 0) == 0 || errno == EINVAL, Console.writeAll(Array(text.utf8), to: file) else {
            throw Errno.error("\(path): cannot be written")
        }
    }
}
