import Glibc

/// Writes one line with one system call: it is complete even if the process is killed, and a tracer sees it
/// as one call.
enum Line {
    static func out(_ text: String) { write(text, to: STDOUT_FILENO) }
    static func error(_ text: String) { write(text, to: STDERR_FILENO) }

    private static func write(_ text: String, to file: Int32) {
        let bytes = Array("\(text)\n".utf8)
        _ = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
    }
}
