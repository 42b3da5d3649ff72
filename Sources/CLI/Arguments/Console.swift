import CountersignAuthority
import CountersignSeal
import CountersignWire
import Glibc

/// The three streams. What was asked for goes to standard output, everything about it to standard error.
package struct Console: Sendable {
    private let output: Int32
    let errors: Int32
    let input: Int32

    init(input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO, errors: Int32 = STDERR_FILENO) {
        self.input = input
        self.output = output
        self.errors = errors
    }

    /// A line, or several, of text that may hold what others wrote.
    package func print(_ text: String) throws(OperationalError) {
        try write(Array((VisibleText.of(text) + "\n").utf8))
    }

    /// Text with colours in it, in which what others wrote is visible already.
    package func print(painted text: String) throws(OperationalError) { try write(Array((text + "\n").utf8)) }

    /// Whether a person reads along.
    var isTerminal: Bool { isatty(output) == 1 }

    /// Bytes as they are.
    package func write(_ bytes: [UInt8]) throws(OperationalError) {
        guard Console.writeAll(bytes, to: output) else {
            throw Errno.error("standard output: cannot write")
        }
    }

    package func reportError(_ text: String) { note("countersign: \(text)") }

    /// A line on standard error. If standard error cannot be written to, the line is lost.
    package func note(_ text: String) {
        _ = Console.writeAll(Array((VisibleText.of(text) + "\n").utf8), to: errors)
    }

    /// Whether a person sees what is said on standard error.
    package var isErrorTerminal: Bool { isatty(errors) == 1 }

    /// On standard error, without a line's end.
    func writeError(_ text: String) { _ = Console.writeAll(Array(text.utf8), to: errors) }

    /// All of standard input, up to `limit` bytes.
    func read(limit: Int = 64 << 20) throws(OperationalError) -> [UInt8] {
        try Console.readAll(input, limit: limit, name: "standard input")
    }

    static func readAll(_ file: Int32, limit: Int, name: String) throws(OperationalError) -> [UInt8] {
        guard let bytes = try FileReader.bytes(of: file, limit: limit, name: name) else {
            throw OperationalError(.usage, message: "\(name): over \(limit) bytes")
        }
        return bytes
    }

    /// A file that the command line names; that it cannot be opened is a mistake there.
    package static func readFile(_ path: String, limit: Int = 64 << 20) throws(OperationalError) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Errno.error("\(path): cannot open", kind: .usage) }
        defer { close(file) }
        return try readAll(file, limit: limit, name: path)
    }

    package static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
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
package enum Errno {
    package static func error(_ what: String, kind: OperationalError.Kind = .failed) -> OperationalError {
        OperationalError(kind, message: "\(what): \(String(cString: strerror(errno)))")
    }
}

/// Questions to the person at the terminal. They are written to standard error, so that standard output
/// contains only the command's result.
extension Console {
    /// Whether a person can be asked.
    var isInteractive: Bool { isatty(input) == 1 }

    /// A line as typed; nil if there is no terminal.
    func ask(_ prompt: String) throws(OperationalError) -> String? {
        guard isInteractive else { return nil }
        write(prompt)
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while Glibc.read(input, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        return String(decoding: line, as: UTF8.self)
    }

    /// A line that the terminal does not show; nil if there is no terminal. Ctrl-C is handled here while echo
    /// is off, so that the terminal is restored.
    func askHidden(_ prompt: String) throws(OperationalError) -> Secret? {
        var before = termios()
        guard isInteractive, tcgetattr(input, &before) == 0 else { return nil }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG | ICANON)
        guard tcsetattr(input, TCSAFLUSH, &silent) == 0 else {
            throw Errno.error("terminal: cannot be silenced")
        }
        // The prompt is written only now: input typed after it is neither shown nor flushed.
        write(prompt)
        // In one place and of one length, so that all of it is wiped, what was typed and taken back as well.
        var line = [UInt8](repeating: 0, count: Console.longestHiddenLine)
        var count = 0
        defer {
            line.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } }
            tcsetattr(input, TCSADRAIN, &before)
            write("\n")
        }
        while true {
            var byte: UInt8 = 0
            let read = Glibc.read(input, &byte, 1)
            if read < 0, errno == EINTR { continue }
            guard read == 1, count < line.count else {
                throw OperationalError(.failed, message: "no password was given")
            }
            switch byte {
            case 0x0A, 0x0D: return Secret(copying: line.span.extracting(0..<count))
            case 0x03, 0x04, 0x1C: throw OperationalError(.failed, message: "given up")
            case 0x7F, 0x08: count = Console.lengthWithoutLastCharacter(of: line, count: count)
            case 0x15: count = 0
            default:
                line[count] = byte
                count += 1
            }
        }
    }

    /// Bytes that a person types.
    private static let longestHiddenLine = 1024

    /// One character fewer, however many bytes it has.
    private static func lengthWithoutLastCharacter(of line: [UInt8], count: Int) -> Int {
        var count = count
        while count > 0 {
            count -= 1
            if line[count] & 0xC0 != 0x80 { break }
        }
        return count
    }

    private func write(_ prompt: String) { _ = Console.writeAll(Array(prompt.utf8), to: errors) }
}

extension Console {
    /// Puts `text` in the place of the last line of standard error, which is a terminal; cut to its width,
    /// for what runs over into a second line could not be taken away again. Of characters one column wide.
    package func replaceLine(_ text: String) {
        // `struct winsize` belongs to whichever C module the compiler loads first; it begins with the rows
        // and the columns. Source: ioctl_tty(2).
        var size = [UInt16](repeating: 0, count: 4)
        let width = ioctl(errors, UInt(TIOCGWINSZ), &size) == 0 && size[1] > 0 ? Int(size[1]) : 80
        writeError("\r\u{1B}[2K\(text.prefix(width - 1))")
    }
}

/// Columns for people: left-aligned, two spaces between.
package enum Table {
    package static func text(head: [String], rows: [[String]]) -> String {
        let all = [head] + rows
        let widths = head.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line
        }.joined(separator: "\n")
    }
}
