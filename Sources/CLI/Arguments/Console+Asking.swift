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
        write(prompt)
        guard tcsetattr(input, TCSAFLUSH, &silent) == 0 else {
            throw SystemProblem.fault("terminal: cannot be silenced")
        }
        var line: [UInt8] = []
        defer {
            line.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } }
            tcsetattr(input, TCSAFLUSH, &before)
            write("\n")
        }
        // Room for all of it, so that no copy is left behind by growing.
        line.reserveCapacity(1024)
        while true {
            var byte: UInt8 = 0
            let count = Glibc.read(input, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1, line.count < 1024 else { throw Fault(.failed, "no password was given") }
            switch byte {
            case 0x0A, 0x0D: return Secret(copying: line.span)
            case 0x03, 0x04, 0x1C: throw Fault(.failed, "given up")
            case 0x7F, 0x08: Console.eraseLast(&line)
            case 0x15: line.removeAll(keepingCapacity: true)
            default: line.append(byte)
            }
        }
    }

    /// One character, however many bytes.
    private static func eraseLast(_ line: inout [UInt8]) {
        while let last = line.popLast(), last & 0xC0 == 0x80 {}
    }

    private func write(_ prompt: String) { _ = Console.writeAll(Array(prompt.utf8), to: errors) }
}
