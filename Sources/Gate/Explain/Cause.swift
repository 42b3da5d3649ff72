import CountersignWire

/// What went wrong where a request was signed, or on its way: named only where the signature holds once that is undone,
/// or where what was sent leaves no other reading.
package struct Cause: Sendable, Equatable {
    /// Stable, for programs: lower-case words with hyphens. Two mistakes in one request are joined by `+`.
    package var code: String
    /// What happened.
    package var sentence: String
    /// How to mend it.
    package var remedy: String
    /// Where the text that was signed leaves the one that was received; nil where they are the same.
    package var difference: Difference?

    init(_ mistake: Mistake, _ detail: String? = nil, difference: Difference? = nil) {
        self.init(mistake.code, mistake.sentence + (detail.map { ": \($0)" } ?? ""), mistake.remedy)
        self.difference = difference
    }

    init(_ code: String, _ sentence: String, _ remedy: String) {
        self.code = code
        self.sentence = sentence
        self.remedy = remedy
    }

    /// Both at once.
    func and(_ other: Cause) -> Cause {
        var both = Cause("\(code)+\(other.code)", "\(sentence); and \(other.sentence)", "\(remedy); \(other.remedy)")
        both.difference = difference ?? other.difference
        return both
    }
}
