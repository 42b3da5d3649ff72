import CountersignWire

/// Where the body of an upstream's answer stands.
struct AnswerReader {
    private var body: BodyReader
    private var endsWithConnection: Bool
    private var didEnd = false

    init(_ framing: UpstreamResponse.Framing) {
        endsWithConnection = framing == .untilClose
        body =
            switch framing {
            case .none, .untilClose: BodyReader()
            case .length(let length): BodyReader(.length(length), allowance: 0)
            case .chunked: BodyReader(.chunked, allowance: 0)
            }
    }

    var isAtEnd: Bool { endsWithConnection ? didEnd : body.isAtEnd }

    mutating func take(from input: Buffer, into piece: Buffer) throws(Refusal) -> Int {
        guard endsWithConnection else { return try body.take(from: input, into: piece) }
        let count = piece.append(input.filled)
        input.take(count)
        return count
    }

    /// The connection ended: the end of the body, or a cut in it.
    mutating func didClose() throws(Refusal) {
        guard endsWithConnection else { throw Refusal(.upstreamFailed, "the answer was cut short") }
        didEnd = true
    }
}
