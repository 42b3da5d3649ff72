import CountersignWire

/// A pattern that finds one part of a text, in time linear in the text: `Shop\/([0-9.]+)`.
///
/// A pattern consists of literals, `\` before a character that is not a letter or digit, classes such as
/// `[0-9.]`, which `+` may repeat, and one group in parentheses, whose bytes are the result. There is no
/// alternation, no nesting and no other repetition, so a pattern is a sequence of items, and matching tracks
/// all items at once. The leftmost match counts, and among those the one with the longest repetition.
package struct TextPattern: Sendable, Equatable {
    /// Limits in bytes of a pattern and of a text; the rest of a longer text is ignored.
    package static let longest = 128
    package static let longestText = 256

    private struct Item: Sendable, Equatable {
        /// The set of bytes that the item matches, as bits.
        var low: UInt128 = 0
        var high: UInt128 = 0
        var repeats = false

        mutating func insert(_ byte: UInt8) {
            if byte < 128 { low |= 1 << UInt128(byte) } else { high |= 1 << UInt128(byte - 128) }
        }

        func takes(_ byte: UInt8) -> Bool {
            byte < 128 ? low & (1 << UInt128(byte)) != 0 : high & (1 << UInt128(byte - 128)) != 0
        }
    }

    private var items: [Item] = []
    /// The items whose bytes are captured; not empty in a valid pattern.
    private var group = 0..<0

    /// Nil if the text is not a valid pattern or is longer than ``longest``.
    package init?(_ pattern: Span<UInt8>) {
        guard (1...TextPattern.longest).contains(pattern.count) else { return nil }
        var index = 0
        var start: Int?
        var end: Int?
        while index < pattern.count {
            let byte = pattern[index]
            index += 1
            switch byte {
            case UInt8(ascii: "("):
                guard start == nil else { return nil }
                start = items.count
            case UInt8(ascii: ")"):
                guard let start, end == nil, items.count > start else { return nil }
                end = items.count
            case UInt8(ascii: "["):
                guard let item = TextPattern.classItem(in: pattern, from: &index) else { return nil }
                items.append(item)
            default:
                guard
                    let literal = TextPattern.literal(
                        byte, in: pattern, from: &index, besides: "()[]{}.*+?|^$/")
                else { return nil }
                var item = Item()
                item.insert(literal)
                items.append(item)
            }
        }
        guard let start, let end else { return nil }
        group = start..<end
    }

    /// The literal byte; nil for a byte that is a metacharacter in common regular expressions.
    private static func literal(
        _ byte: UInt8, in pattern: Span<UInt8>, from index: inout Int, besides special: StaticString
    ) -> UInt8? {
        guard byte >= 0x20, byte < 0x7F else { return nil }
        guard byte == UInt8(ascii: "\\") else {
            for place in 0..<special.utf8CodeUnitCount where special.utf8Start[place] == byte { return nil }
            return byte
        }
        // `\d` and similar escapes are not part of the language: an escaped letter or digit is an error.
        guard index < pattern.count else { return nil }
        let escaped = pattern[index]
        guard escaped > 0x20, escaped < 0x7F, !ASCII.isLetter(escaped), !ASCII.isDigit(escaped) else {
            return nil
        }
        index += 1
        return escaped
    }

    /// A class and an optional `+` after it; `index` is after the opening bracket.
    private static func classItem(in pattern: Span<UInt8>, from index: inout Int) -> Item? {
        var item = Item()
        var isEmpty = true
        while index < pattern.count, pattern[index] != UInt8(ascii: "]") {
            let byte = pattern[index]
            index += 1
            guard let first = literal(byte, in: pattern, from: &index, besides: "[^") else { return nil }
            var last = first
            if index + 1 < pattern.count, pattern[index] == UInt8(ascii: "-"),
                pattern[index + 1] != UInt8(ascii: "]")
            {
                let end = pattern[index + 1]
                index += 2
                guard let upper = literal(end, in: pattern, from: &index, besides: "[^"), upper >= first
                else {
                    return nil
                }
                last = upper
            }
            for member in first...last { item.insert(member) }
            isEmpty = false
        }
        guard index < pattern.count, !isEmpty else { return nil }
        index += 1
        if index < pattern.count, pattern[index] == UInt8(ascii: "+") {
            item.repeats = true
            index += 1
        }
        return item
    }

    // MARK: Matching

    /// One way in which the text read so far can begin a match.
    private struct Thread {
        /// The item that must match the next byte.
        var item: Int
        var start: Int?
        var end: Int?
    }

    /// Threads by priority; at most one for each item, so the cost of a byte is bounded by the number of
    /// items.
    private struct Threads {
        private(set) var all: [Thread] = []
        private var items: UInt128 = 0

        mutating func append(_ thread: Thread) {
            let bit: UInt128 = 1 << UInt128(thread.item)
            guard items & bit == 0 else { return }
            items |= bit
            all.append(thread)
        }
    }

    /// The bytes that the group captures, as a range of `text`; nil if nothing matches, and if the capture
    /// ends at ``longestText`` in a longer text, because it may be truncated.
    package func capture(in text: Span<UInt8>) -> Range<Int>? {
        let count = min(text.count, TextPattern.longestText)
        var threads = Threads()
        var found: Thread?
        for index in 0..<count {
            if found == nil { threads.append(entering(Thread(item: 0), at: index)) }
            var next = Threads()
            for thread in threads.all where items[thread.item].takes(text[index]) {
                if items[thread.item].repeats { next.append(thread) }
                var ahead = thread
                ahead.item += 1
                if ahead.item == group.upperBound { ahead.end = index + 1 }
                guard ahead.item == items.count else {
                    next.append(entering(ahead, at: index + 1))
                    continue
                }
                found = ahead
                // The remaining threads began later or repeat less.
                break
            }
            threads = next
            if found != nil, threads.all.isEmpty { break }
        }
        guard let found, let start = found.start, let end = found.end, start < end else { return nil }
        return end == count && count < text.count ? nil : start..<end
    }

    private func entering(_ thread: Thread, at index: Int) -> Thread {
        guard thread.item == group.lowerBound, thread.start == nil else { return thread }
        var thread = thread
        thread.start = index
        return thread
    }
}
