/// A member of a list that a client weights, such as `text/plain;version=0.0.4;q=0.5` of `Accept`. Source:
/// RFC 9110 §12.4.2.
package struct WeightedMember: Sendable, Equatable {
    /// Without blanks around it, as are the parameters.
    package let value: String
    /// Those except the weight, in their order; an empty one stands for nothing between two semicolons.
    package let parameters: [String]
    /// In thousandths, from 0 to 1000, which also counts where none is given.
    package let weight: Int

    /// Nil if there are two weights, or one that is malformed.
    package init?(_ member: Substring) {
        let parts = member.split(separator: ";", omittingEmptySubsequences: false)
            .map(WeightedMember.trimmed)
        let weights = parts.dropFirst().filter(WeightedMember.isWeight)
        guard weights.count <= 1, let value = parts.first,
            let weight = weights.first.map(WeightedMember.thousandths) ?? 1000
        else { return nil }
        self.value = value
        self.weight = weight
        parameters = parts.dropFirst().filter { !WeightedMember.isWeight($0) }
    }

    private static func isWeight(_ parameter: String) -> Bool {
        parameter.hasPrefix("q=") || parameter.hasPrefix("Q=")
    }

    /// `q=0.25`: at most three digits behind the point; nil for anything else.
    private static func thousandths(_ parameter: String) -> Int? {
        let text = Array(parameter.utf8)
        guard (3...7).contains(text.count), text.count == 3 || text[3] == UInt8(ascii: ".")
        else { return nil }
        let digits = [text[2]] + text.dropFirst(4)
        guard digits.allSatisfy(ASCII.isDigit) else { return nil }
        let padded = digits + [UInt8](repeating: UInt8(ascii: "0"), count: 4 - digits.count)
        let weight = padded.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return weight <= 1000 ? weight : nil
    }

    private static func trimmed(_ text: Substring) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        let start = text.firstIndex { !isBlank($0) } ?? text.endIndex
        let end = text.lastIndex { !isBlank($0) }.map { text.index(after: $0) } ?? start
        return String(text[start..<end])
    }
}
