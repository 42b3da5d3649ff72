import CountersignAuthority
import CountersignSeal
import CountersignWire
import Glibc

/// The three streams. What was asked for goes to standard output, everything about it to standard error.
package struct Console: Sendable {
    private let output: Sink
    private let errors: Sink
    private let input: Source

    private enum Source: Sendable {
        case descriptor(Int32)
        case memory([UInt8])

        var descriptor: Int32? { if case .descriptor(let number) = self { number } else { nil } }
    }

    private enum Sink: Sendable {
        case descriptor(Int32)
        case memory(MemoryStream)

        var descriptor: Int32? { if case .descriptor(let number) = self { number } else { nil } }
        var isTerminal: Bool { descriptor.map { isatty($0) == 1 } ?? false }

        func write(_ bytes: [UInt8]) -> Bool {
            switch self {
            case .descriptor(let number): Console.writeAll(bytes, to: number)
            case .memory(let stream): stream.write(bytes)
            }
        }
    }

    /// The streams of this process.
    package init() {
        (input, output, errors) = (
            .descriptor(STDIN_FILENO), .descriptor(STDOUT_FILENO), .descriptor(STDERR_FILENO)
        )
    }

    /// Streams in memory, of a command that runs within a server or a test. It can ask no questions.
    package init(input: [UInt8], output: MemoryStream, errors: MemoryStream) {
        (self.input, self.output, self.errors) = (.memory(input), .memory(output), .memory(errors))
    }

    /// A line, or several, of text that may hold what others wrote.
    package func print(_ text: String) throws(OperationalError) {
        try write(Array((VisibleText.of(text) + "\n").utf8))
    }

    /// Text with colours in it, in which what others wrote is visible already.
    package func print(painted text: String) throws(OperationalError) { try write(Array((text + "\n").utf8)) }

    /// Whether a person reads along.
    var isTerminal: Bool { output.isTerminal }

    /// Bytes as they are.
    package func write(_ bytes: [UInt8]) throws(OperationalError) {
        guard output.write(bytes) else {
            if case .memory(let stream) = output { throw stream.overflow }
            throw Errno.error("standard output: cannot write")
        }
    }

    package func reportError(_ text: String) { note("countersign: \(text)") }

    /// A line on standard error. If standard error cannot be written to, the line is lost.
    package func note(_ text: String) {
        writeError(VisibleText.of(text) + "\n")
    }

    package func note(_ texts: [String]) { for text in texts { note(text) } }

    /// Whether a person sees what is said on standard error.
    package var isErrorTerminal: Bool { errors.isTerminal }

    /// On standard error, without a line's end.
    func writeError(_ text: String) { _ = errors.write(Array(text.utf8)) }

    /// All of standard input, up to `limit` bytes.
    func read(limit: Int = 64 << 20) throws(OperationalError) -> [UInt8] {
        switch input {
        case .descriptor(let number):
            return try Console.readAll(number, limit: limit, name: "standard input")
        case .memory(let bytes):
            guard bytes.count <= limit else { throw Console.tooLong("standard input", limit: limit) }
            return bytes
        }
    }

    fileprivate static func tooLong(_ name: String, limit: Int) -> OperationalError {
        OperationalError(.usage, message: "\(name): over \(limit) bytes")
    }

    static func readAll(_ file: Int32, limit: Int, name: String) throws(OperationalError) -> [UInt8] {
        guard let bytes = try FileReader.bytes(of: file, limit: limit, name: name) else {
            throw tooLong(name, limit: limit)
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

/// A standard stream of a command that runs within a server or a test. What the command writes stays in
/// memory.
package final class MemoryStream: Sendable {
    private let name: String
    private let limit: Int
    private let written = Locked<[UInt8]>([])

    /// `name` is for errors. Takes at most `limit` bytes.
    package init(_ name: String, limit: Int) { (self.name, self.limit) = (name, limit) }

    package var bytes: [UInt8] { written.with { $0 } }

    fileprivate var overflow: OperationalError { Console.tooLong(name, limit: limit) }

    /// Writes all of it, or nothing.
    fileprivate func write(_ bytes: [UInt8]) -> Bool {
        written.with { written in
            guard bytes.count <= limit - written.count else { return false }
            written += bytes
            return true
        }
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
    var isInteractive: Bool { terminal != nil }

    /// Where the person types.
    private var terminal: Int32? { input.descriptor.flatMap { isatty($0) == 1 ? $0 : nil } }

    /// A line as typed; nil if there is no terminal.
    func ask(_ prompt: String) throws(OperationalError) -> String? {
        guard let terminal else { return nil }
        writeError(prompt)
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while Glibc.read(terminal, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        return String(decoding: line, as: UTF8.self)
    }

    /// A line that the terminal does not show; nil if there is no terminal. Ctrl-C is handled here while echo
    /// is off, so that the terminal is restored.
    func askHidden(_ prompt: String) throws(OperationalError) -> Secret? {
        var before = termios()
        guard let terminal, tcgetattr(terminal, &before) == 0 else { return nil }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG | ICANON)
        guard tcsetattr(terminal, TCSAFLUSH, &silent) == 0 else {
            throw Errno.error("terminal: cannot be silenced")
        }
        // The prompt is written only now: input typed after it is neither shown nor flushed.
        writeError(prompt)
        // In one place and of one length, so that all of it is wiped, what was typed and taken back as well.
        var line = [UInt8](repeating: 0, count: Console.longestHiddenLine)
        var count = 0
        defer {
            line.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } }
            tcsetattr(terminal, TCSADRAIN, &before)
            writeError("\n")
        }
        while true {
            var byte: UInt8 = 0
            let read = Glibc.read(terminal, &byte, 1)
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
}

extension Console {
    /// Puts `text` in the place of the last line of standard error, which is a terminal; cut to its width,
    /// for what runs over into a second line could not be taken away again. Of characters one column wide.
    package func replaceLine(_ text: String) {
        // `struct winsize` belongs to whichever C module the compiler loads first; it begins with the rows
        // and the columns. Source: ioctl_tty(2).
        var size = [UInt16](repeating: 0, count: 4)
        let isKnown = errors.descriptor.map { ioctl($0, UInt(TIOCGWINSZ), &size) == 0 } ?? false
        let width = isKnown && size[1] > 0 ? Int(size[1]) : 80
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
