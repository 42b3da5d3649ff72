import CountersignAuthority
import CountersignHTTP

/// Keeps an answer while it passes, up to a bound, and notes whether the backend can have had the request at all. Confined to
/// one loop.
final class AnswerRecorder: AnswerObserver {
    private let mostKept: Int
    private var isReached = false
    private var status: Int?
    private var fields: [StoredAnswer.Field] = []
    private var body: [UInt8] = []
    private var isTooLong = false
    private var isWhole = false

    init(keeping mostKept: Int) { self.mostKept = mostKept }

    func mayBeDone() { isReached = true }

    func didBegin(status: Int, fields: [AnswerField]) {
        // An answer that comes before the request's end is an answer to it all the same.
        isReached = true
        self.status = status
        self.fields = fields.map { StoredAnswer.Field(name: $0.name, value: $0.value) }
    }

    func didRead(_ bytes: Span<UInt8>) {
        guard !isTooLong else { return }
        guard body.count + bytes.count <= mostKept else {
            isTooLong = true
            return body = []
        }
        bytes.withUnsafeBufferPointer { body.append(contentsOf: $0) }
    }

    func didEnd() { isWhole = true }

    /// What was too long to keep is known to be done; nothing more is learnt from its rest.
    var wantsRest: Bool { !isTooLong }

    var outcome: Once.Outcome {
        guard let status else { return isReached ? .unknown : .notReached }
        if isTooLong { return .answered(.long(status: status)) }
        return isWhole ? .answered(.whole(status: status, fields: fields, body: body)) : .unknown
    }
}
