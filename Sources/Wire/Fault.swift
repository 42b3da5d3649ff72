/// Our own fault, or the machine's: a store that cannot be read, a disk that is full. A fault fails closed.
///
/// `message` names the thing and what was expected; it is shown to operators, never to callers.
package struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// The command was used wrongly; exit 2.
        case usage
        /// The thing asked for failed; exit 1.
        case failed
        /// The server or a store could not be reached; exit 3.
        case unreachable
    }

    package var kind: Kind
    package var message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    package var description: String { message }
}
