/// As much of a cell's story as a report shows. A storm of a thousand logins is told by how it began and ended, and a big body by its
/// beginning: the report of a whole run is to open in a browser.
struct Excerpt {
    /// Of one step's text, in bytes of UTF-8.
    static let longestText = 3_000
    static let stepsOfBeginning = 30
    static let stepsOfEnd = 10

    /// One step.
    struct Part {
        var actor: Step.Actor
        var did: String
        var shown: String?
        /// Bytes of what was shown that are not there.
        var bytesLeftOut = 0

        init(_ step: Step) {
            actor = step.actor
            did = step.did
            guard let text = step.shown else { return }
            shown = Excerpt.cut(text)
            bytesLeftOut = text.utf8.count - (shown?.utf8.count ?? 0)
        }
    }

    var beginning: [Part]
    /// How many are not there, between the two.
    var stepsLeftOut: Int
    var end: [Part]

    init(of cell: Cell) {
        let first = cell.steps.prefix(Excerpt.stepsOfBeginning)
        let last = cell.steps.dropFirst(first.count).suffix(Excerpt.stepsOfEnd)
        beginning = first.map { Part($0) }
        stepsLeftOut = cell.steps.count - first.count - last.count
        end = last.map { Part($0) }
    }

    /// Never within a character.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > longestText else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: longestText)
        while text.utf8[end] & 0xC0 == 0x80 { end = text.utf8.index(before: end) }
        return String(decoding: text.utf8[..<end], as: UTF8.self)
    }
}
