import Glibc

/// What the machine would not do for the engine: a port that is taken, a certificate that cannot be read.
public struct HTTPFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// Names the thing, and what was expected.
    public let description: String

    init(_ description: String) { self.description = description }

    /// The message, with the system's word for `errno` behind it.
    static func system(_ message: String, _ code: Int32 = errno) -> HTTPFault {
        HTTPFault("\(message): \(String(cString: strerror(code)))")
    }
}
