import CountersignWire

/// Ways of percent-encoding that are in use. What one library writes as `+` another writes as `%20`, and what
/// one leaves alone another escapes.
enum PercentEncodingVariants {
    /// Source: RFC 3986 §2.3: all but unreserved characters, in upper-case digits.
    static func strict(_ plain: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        PercentEncoding.encode(plain.span, into: &text)
        return text
    }

    /// As JavaScript's `encodeURIComponent` has it.
    static func component(_ plain: [UInt8]) -> [UInt8] { encode(plain, keeping: "!'()*") }

    /// As forms have it: `+` for a space. Source: WHATWG URL, application/x-www-form-urlencoded serializer.
    static func form(_ plain: [UInt8]) -> [UInt8] {
        encode(plain, keeping: "*").replacing([UInt8]("%20"), with: [UInt8]("+"))
            .replacing([UInt8]("~"), with: [UInt8]("%7E"))
    }

    /// Each text as those three write it, and in lower-case digits.
    static func all(_ plain: [UInt8]) -> [[UInt8]] {
        [strict(plain), form(plain), component(plain), lowerCase(strict(plain)), lowerCase(form(plain))]
    }

    static func decode(_ text: [UInt8], plus: UInt8 = UInt8(ascii: "+")) -> [UInt8] {
        var plain: [UInt8] = []
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%"), let byte = PercentEncoding.byte(in: text.span, at: index + 1)
            {
                plain.append(byte)
                index += 3
            } else {
                plain.append(text[index] == UInt8(ascii: "+") ? plus : text[index])
                index += 1
            }
        }
        return plain
    }

    /// `%2F` as `%2f`.
    static func lowerCase(_ text: [UInt8]) -> [UInt8] { mapDigits(of: text) { ASCII.lowercased($0) } }

    /// `%2f` as `%2F`.
    static func upperCase(_ text: [UInt8]) -> [UInt8] {
        mapDigits(of: text) { $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "f") ? $0 - 0x20 : $0 }
    }

    private static func mapDigits(of text: [UInt8], change: (UInt8) -> UInt8) -> [UInt8] {
        var text = text
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%"), PercentEncoding.byte(in: text.span, at: index + 1) != nil {
                text[index + 1] = change(text[index + 1])
                text[index + 2] = change(text[index + 2])
                index += 3
            } else {
                index += 1
            }
        }
        return text
    }

    private static func encode(_ plain: [UInt8], keeping kept: String) -> [UInt8] {
        let kept = [UInt8](kept)
        var (text, start): ([UInt8], Int) = ([], 0)
        for index in plain.indices where kept.contains(plain[index]) {
            PercentEncoding.encode(plain.span.extracting(start..<index), into: &text)
            text.append(plain[index])
            start = index + 1
        }
        PercentEncoding.encode(plain.span.extracting(start..<plain.count), into: &text)
        return text
    }
}

/// The parameters of a query or form as they are written.
struct QueryPairs {
    var all: [(name: [UInt8], value: [UInt8]?)]

    init(_ text: [UInt8]) {
        all =
            text.isEmpty
            ? []
            : text.split(at: .ampersand).map { pair in
                guard let mark = pair.firstIndex(of: .equals) else { return (pair, nil) }
                return (Array(pair[..<mark]), Array(pair[(mark + 1)...]))
            }
    }

    var text: [UInt8] {
        let pairs = all.map { pair in pair.value.map { pair.name + [.equals] + $0 } ?? pair.name }
        return Array(pairs.joined(separator: [.ampersand]))
    }

    func mapped(_ change: ([UInt8]) -> [UInt8]) -> [UInt8] {
        var changed = self
        changed.all = all.map { (change($0.name), $0.value.map(change)) }
        return changed.text
    }

    func sorted(by isBefore: ((name: [UInt8], value: [UInt8]?), (name: [UInt8], value: [UInt8]?)) -> Bool)
        -> [UInt8]
    {
        var changed = self
        changed.all.sort(by: isBefore)
        return changed.text
    }

    /// In other orders: by name, by name and value, backwards, and, of few, every one.
    var orders: [[UInt8]] {
        var found = [
            sorted { $0.name.lexicographicallyPrecedes($1.name) },
            sorted {
                ($0.name + [0] + ($0.value ?? [])).lexicographicallyPrecedes($1.name + [0] + ($1.value ?? []))
            },
        ]
        var backwards = self
        backwards.all.reverse()
        found.append(backwards.text)
        guard (2...4).contains(all.count) else { return found }
        return found
            + QueryPairs.permutations(all.count).map { order in
                var changed = self
                changed.all = order.map { all[$0] }
                return changed.text
            }
    }

    private static func permutations(_ count: Int) -> [[Int]] {
        guard count > 1 else { return [[0]] }
        return permutations(count - 1).flatMap { rest in
            (0..<count).map { place in
                var order = rest
                order.insert(count - 1, at: place)
                return order
            }
        }
    }
}
