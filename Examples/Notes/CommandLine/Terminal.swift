import Dispatch
import Foundation
import Glibc

/// Lines of standard input. Each is read on a queue of its own, so that nothing else waits for it.
struct Terminal: Sendable {
    private let queue = DispatchQueue(label: "notes.terminal")

    /// Nil at the end of input. `prompt` is shown where a person can read it.
    func line(_ prompt: String) async -> String? {
        await read {
            Terminal.show(prompt)
            return readLine()
        }
    }

    /// The same, without showing on the terminal what is typed.
    func secret(_ prompt: String) async -> String? {
        await read {
            Terminal.withoutEcho {
                // Only now: what is typed at once is neither shown nor discarded.
                Terminal.show(prompt)
                return readLine()
            }
        }
    }

    private func read(_ body: @escaping @Sendable () -> String?) async -> String? {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }

    private static func show(_ prompt: String) {
        if isatty(STDIN_FILENO) == 1 { FileHandle.standardError.write(Data(prompt.utf8)) }
    }

    private static func withoutEcho(_ body: () -> String?) -> String? {
        var before = termios()
        guard tcgetattr(STDIN_FILENO, &before) == 0 else { return body() }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        // Ctrl-C must not leave the terminal silent.
        let shown = before
        signal(SIGINT, SIG_IGN)
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        interrupt.setEventHandler {
            var shown = shown
            tcsetattr(STDIN_FILENO, TCSANOW, &shown)
            exit(130)
        }
        interrupt.resume()
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer {
            tcsetattr(STDIN_FILENO, TCSANOW, &before)
            interrupt.cancel()
            signal(SIGINT, SIG_DFL)
            show("\n")
        }
        return body()
    }
}
