/// A bounded queue that is fair between callers: first in, first out for each caller, and the callers take
/// turns. A caller with a lower load comes first.
///
/// When the queue is full, a new entry displaces the newest entry of the caller with the most entries, if
/// that caller has more than the new entry's caller would have. No caller can therefore fill the queue and
/// exclude others.
struct FairQueue<Caller: Hashable, Element> {
    /// The entries of each caller, in order of arrival; no line is empty.
    private var lines: [Caller: FIFOQueue<Element>] = [:]
    /// The callers with entries, in the order of their turns.
    private var turns = FIFOQueue<Caller>()
    /// Entries of all callers. A lower one removes no entry.
    var limit: Int
    private(set) var count = 0

    init(limit: Int) { self.limit = limit }

    var isEmpty: Bool { count == 0 }

    /// Appends `element`; returns the entry that has no place: another caller's newest entry, `element`
    /// itself, or nil.
    mutating func append(_ element: Element, of caller: Caller) -> Element? {
        var displaced: Element?
        if count >= limit {
            let most = lines.max { $0.value.count < $1.value.count }
            guard let most, most.value.count > (lines[caller]?.count ?? 0) + 1 else { return element }
            displaced = removeLast(of: most.key)
        }
        if lines[caller] == nil { turns.append(caller) }
        lines[caller, default: FIFOQueue()].append(element)
        count += 1
        return displaced
    }

    /// Removes the oldest entry of the caller with the least `load` (not negative); of equal callers, the
    /// one whose turn is next.
    mutating func popFirst(by load: (Caller) -> Int = { _ in 0 }) -> Element? {
        guard let caller = turns.popLeast(by: load), let element = lines[caller]?.popFirst()
        else { return nil }
        count -= 1
        if lines[caller]?.isEmpty == false { turns.append(caller) } else { lines[caller] = nil }
        return element
    }

    func forEach(_ body: (Element) -> Void) {
        for line in lines.values { line.forEach(body) }
    }

    /// Removes entries from the front of each caller's line while `isOver` is true for them.
    mutating func removeFirst(while isOver: (Element) -> Bool) -> [Element] {
        var removed: [Element] = []
        for caller in Array(lines.keys) {
            while let first = lines[caller]?.first, isOver(first) {
                lines[caller]?.removeFirst()
                removed.append(first)
            }
            if lines[caller]?.isEmpty == true { remove(caller) }
        }
        count -= removed.count
        return removed
    }

    /// Removes the newest entry of a caller; only for a caller with two entries or more.
    private mutating func removeLast(of caller: Caller) -> Element? {
        guard let element = lines[caller]?.popLast() else { return nil }
        count -= 1
        return element
    }

    private mutating func remove(_ caller: Caller) {
        lines[caller] = nil
        turns.removeAll { $0 == caller }
    }
}

/// A first-in, first-out queue with amortised constant time for each operation at its ends.
struct FIFOQueue<Element> {
    private var elements: [Element?] = []
    private var head = 0

    init() {}

    var count: Int { elements.count - head }
    var isEmpty: Bool { count == 0 }
    var first: Element? { head < elements.count ? elements[head] : nil }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popLast() -> Element? { isEmpty ? nil : elements.removeLast() }

    mutating func popFirst() -> Element? {
        guard let element = first else { return nil }
        removeFirst()
        return element
    }

    /// Removes the first element with the least `rank` (not negative). Linear time if no rank is 0.
    mutating func popLeast(by rank: (Element) -> Int) -> Element? {
        var least: (index: Int, rank: Int)?
        for index in head..<elements.count {
            guard let element = elements[index] else { continue }
            let rank = rank(element)
            if least.map({ rank < $0.rank }) ?? true { least = (index, rank) }
            if rank == 0 { break }
        }
        guard let least else { return nil }
        return least.index == head ? popFirst() : elements.remove(at: least.index)
    }

    func forEach(_ body: (Element) -> Void) {
        for index in head..<elements.count {
            if let element = elements[index] { body(element) }
        }
    }

    mutating func removeFirst() {
        guard head < elements.count else { return }
        elements[head] = nil
        head += 1
        guard head * 2 >= elements.count else { return }
        elements.removeFirst(head)
        head = 0
    }

    mutating func removeAll(where isRemoved: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map { !isRemoved($0) } ?? false }
        head = 0
    }
}
