/// Sees what becomes of a request at the upstream. Confined to the loop of its exchange.
package protocol AnswerObserver: AnyObject {
    /// From here on the upstream may have read enough of the request to do what it asks for.
    func mayBeDone()
    /// The head of the final answer has come.
    func didBegin(status: Int, fields: [AnswerField])
    /// The next bytes of its body.
    func didRead(_ bytes: Span<UInt8>)
    /// All of the answer has come.
    func didEnd()
    /// Whether the rest of the answer is to be read, although the client is gone.
    var wantsRest: Bool { get }
}

/// A field of an upstream's answer; its name in lower case.
package struct AnswerField: Sendable, Equatable {
    package var name: String
    package var value: [UInt8]

    package init(name: String, value: [UInt8]) {
        self.name = name
        self.value = value
    }
}
