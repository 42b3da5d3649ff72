import CountersignSeal
import CountersignWire
import Glibc

/// The three streams. What was asked for goes to standard output, everything about it to standard error.
struct Console: Sendable {
    private let output: Int32
    let errors: Int32
    let input: Int32

    init(input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO, errors: Int32 = STDERR_FILENO) {
        self.input = input
        self.output = output
        self.errors = errors
    }

    /// A line, or several, of text that may hold what others wrote.
    func print(_ text: String) throws(Fault) { try write(Array((VisibleText.of(text) + "\n").utf8)) }

    /// Text with colours in it, in which what others wrote is visible already.
    func print(painted text: String) throws(Fault) { try write(Array((text + "\n").utf8)) }

    /// Whether a person reads along.
    var isTerminal: Bool { isatty(output) == 1 }

    /// Bytes as they are.
    func write(_ bytes: [UInt8]) throws(Fault) {
        guard Console.writeAll(bytes, to: output) else {
            throw SystemProblem.fault("standard output: cannot write")
        }
    }

    func complain(_ text: String) { note("countersign: \(text)") }

    /// A line on standard error. Where that cannot be written to, there is nobody left to tell.
    func note(_ text: String) { _ = Console.writeAll(Array((VisibleText.of(text) + "\n").utf8), to: errors) }

    /// Whether a person sees what is said on standard error.
    var isWatched: Bool { isatty(errors) == 1 }

    /// On standard error, without a line's end.
    func hint(_ text: String) { _ = Console.writeAll(Array(text.utf8), to: errors) }

    /// All of standard input, up to `limit` bytes.
    func read(limit: Int = 64 << 20) throws(Fault) -> [UInt8] {
        try Console.readAll(input, limit: limit, name: "standard input")
    }

    static func readAll(_ file: Int32, limit: Int, name: String) throws(Fault) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemProblem.fault("\(name): cannot read") }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= limit else { throw Fault(.usage, "\(name): over \(limit) bytes") }
        }
    }

    /// A file that the command line names; that it cannot be opened is a mistake there.
    static func readFile(_ path: String, limit: Int = 64 << 20) throws(Fault) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw SystemProblem.fault("\(path): cannot open", .usage) }
        defer { close(file) }
        return try readAll(file, limit: limit, name: path)
    }

    static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

/// errno as a fault.
enum SystemProblem {
    static func fault(_ what: String, _ kind: Fault.Kind = .failed) -> Fault {
        Fault(kind, "\(what): \(String(cString: strerror(errno)))")
    }
}
