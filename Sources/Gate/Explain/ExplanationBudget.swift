import CountersignSchemes
import CountersignWire

/// The limit on the cost of an explanation: it runs on the threads that serve requests, so a deliberately
/// wrong request must not cost more than this. It counts work and no time, so that the same request has the
/// same explanation on every machine.
package struct ExplanationBudget: Sendable {
    /// For a person with one request: a second at most.
    package static let command = ExplanationBudget(work: 64 << 20)
    /// For a response: about 5 ms of a core in a release build, while other requests of that loop wait.
    package static let response = ExplanationBudget(work: 3 << 20)
    /// For operators, after a response: about 2 ms.
    package static let operators = ExplanationBudget(work: 5 << 18)

    /// What is left of it, in bytes that are read, written or hashed.
    private(set) var work: Int
    /// Hypotheses under a key. Somewhat more than the single mistakes of one request come to; the rest is for
    /// pairs.
    private(set) var trials = 320

    /// What a hypothesis costs besides its bytes.
    static let hypothesis = 4 << 10
    /// Requests of one mistake that a second one is tried on.
    static let maximumVariants = 2
    /// Bodies beyond this are not read as JSON or forms, nor written again.
    static let largestBody = 64 << 10
    /// What a compressed body may become: as much as the gateway holds.
    static let largestInflatedBody = 1 << 20

    init(work: Int) { self.work = work }

    var isSpent: Bool { trials <= 0 || work < ExplanationBudget.hypothesis }

    /// Takes the work of a step before it begins; false if that is more than what is left. A step that is too
    /// large does not end the search: a smaller one may follow.
    mutating func take(_ amount: Int) -> Bool {
        guard !isSpent, amount <= work else { return false }
        work -= amount
        return true
    }

    /// Takes a trial of a string to sign. Verifying under a key pair takes as long as hashing some kilobytes
    /// does.
    mutating func takeTrial(of text: SigningString, under key: SigningKey) -> Bool {
        let weight = key.publicKey == nil ? 1 : 4
        guard take(weight * ExplanationBudget.hypothesis / 2 + text.bytes.count) else { return false }
        trials -= weight
        return true
    }
}

extension Mistake {
    /// The part of a request that a correction reads and writes, and so what bounds its work.
    enum Scope: Sendable {
        case head
        /// The query, or a form.
        case parameters
        /// Each field in its turn.
        case fields
        /// A body that is small enough to be written again.
        case body
        /// The same of JSON, in many ways.
        case json
        /// The digest of a body of any size.
        case digest
        /// A body with a Content-Encoding.
        case compressed
    }

    /// The most that undoing it reads and writes.
    func work(on draft: Draft) -> Int {
        let head = draft.headBytes
        let body = draft.body.count <= ExplanationBudget.largestBody ? draft.body.count : 0
        switch scope {
        case .head: return 10 * head
        case .parameters: return 48 * (draft.target.count + (draft.isForm ? body : 0))
        case .fields: return 10 * head + 64 * draft.fields.count * draft.fields.count
        case .body: return 16 * body
        case .json: return JSONVariants.work(on: draft.body)
        case .digest: return 10 * head + 4 * draft.body.count
        case .compressed:
            // Deflate makes at most 1,032 bytes of one.
            return draft.value(of: "content-encoding") == nil
                ? 0 : 2 * min(1_032 * draft.body.count, ExplanationBudget.largestInflatedBody)
        }
    }

    /// The same for a string to sign or a MAC.
    func work(on input: SigningInput) -> Int {
        let text = input.text.bytes.count + input.canonicalRequest.count
        switch correction {
        case .mac: return 32 * text + ExplanationBudget.hypothesis
        default: return 32 * text + work(on: input.draft)
        }
    }
}

extension Draft {
    fileprivate var headBytes: Int {
        fields.reduce(target.count + authority.utf8.count) { $0 + $1.name.utf8.count + $1.value.count + 32 }
    }

    /// The most bytes that a scheme reads of it.
    var readBytes: Int { headBytes + body.count }
}
