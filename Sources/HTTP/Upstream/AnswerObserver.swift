/// Sees what becomes of a request at the upstream. Confined to the loop of its exchange.
package protocol AnswerObserver: AnyObject {
    /// What goes out next may be the request's last byte: from here on the upstream may do what it asks for.
    func willSendLast()
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
