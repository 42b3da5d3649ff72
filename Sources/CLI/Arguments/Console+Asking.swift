import CountersignSeal
import CountersignWire
import Glibc

/// Questions to whoever sits at the terminal. They are written to standard error, so that standard output stays what was asked for.
extension Console {
    /// Whether a person can be asked.
    var isAskable: Bool { isatty(input) == 1 }

    /// A line as it is typed; nil where nobody is there to ask.
    func ask(_ prompt: String) throws(Fault) -> String? {
        guard isAskable else { return nil }
        write(prompt)
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while Glibc.read(input, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        return String(decoding: line, as: UTF8.self)
    }

    /// A line that the terminal does not show; nil where nobody is there to ask. The terminal's keys are handled here while it
    /// is told to be silent, so that Ctrl-C finds it as it was.
    func askUnseen(_ prompt: String) throws(Fault) -> Secret? {
        var before = termios()
        guard isAskable, tcgetattr(input, &before) == 0 else { return nil }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG | ICANON)
        guard tcsetattr(input, TCSAFLUSH, &silent) == 0 else {
            throw SystemProblem.fault("terminal: cannot be silenced")
        }
        // Only now: who types as soon as he is asked is neither shown nor flushed.
        write(prompt)
        // In one place and of one length, so that all of it is wiped, what was typed and taken back as well.
        var line = [UInt8](repeating: 0, count: Console.longestUnseen)
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
            guard read == 1, count < line.count else { throw Fault(.failed, "no password was given") }
            switch byte {
            case 0x0A, 0x0D: return Secret(copying: line.span.extracting(0..<count))
            case 0x03, 0x04, 0x1C: throw Fault(.failed, "given up")
            case 0x7F, 0x08: count = Console.withoutLast(line, count)
            case 0x15: count = 0
            default:
                line[count] = byte
                count += 1
            }
        }
    }

    /// Bytes that a person types.
    private static let longestUnseen = 1024

    /// One character fewer, however many bytes it has.
    private static func withoutLast(_ line: [UInt8], _ count: Int) -> Int {
        var count = count
        while count > 0 {
            count -= 1
            if line[count] & 0xC0 != 0x80 { break }
        }
        return count
    }

    private func write(_ prompt: String) { _ = Console.writeAll(Array(prompt.utf8), to: errors) }
}
