import CountersignSchemes
import CountersignWire

/// What a log of keyed requests says, in memory: about 120 bytes for each request. Answers stay in the file.
///
/// It has one owner, and changes only as records say (``apply(_:at:)``), so that each process that reads the
/// same records has the same index.
final class RequestLogIndex {
    /// Where a record, or an answer, is.
    struct Place: Equatable {
        var segment: UInt32
        var offset: UInt32

        func after(_ bytes: Int) -> Place { Place(segment: segment, offset: offset + UInt32(bytes)) }
    }

    struct Entry: Equatable {
        var name: RequestName
        var digest: RequestName
        var begun: Int64
        /// Numbers of ``owners``.
        var scope: UInt32
        var holder: UInt32
        /// Nil while the request has no outcome.
        var status: Int32?
        /// The first byte of the sealed answer; 0 if there is none.
        var slot: UInt8 = 0
        var record: Place
        /// The answer: its place and its bytes.
        var body = Place(segment: 0, offset: 0)
        var bodyBytes: UInt32 = 0
        /// The neighbours among the finished requests of its holder, oldest first.
        var previous = none
        var next = none
    }

    /// The numbers of a request's owners; nil for one that has no request.
    struct Owners {
        fileprivate var scope: UInt32?
        fileprivate var holder: UInt32?
    }

    private struct Owner {
        let identity: OwnerIdentity
        let kind: OwnerKind
        /// Whether the number is free.
        var isGone = false
        var isHeavy = false
        var use = IdempotencyUsage.none
        /// The finished requests that it holds, oldest first.
        var first = none
        var last = none

        /// As holders are compared.
        var weight: Int { max(use.keys * IdempotencyBounds.bytesOfKey, use.bytes) }
    }

    private enum OwnerIdentity: Hashable {
        case account(Int64)
        case release(KeyID)
        case network([UInt8])

        var kind: OwnerKind {
            switch self {
            case .account: .account
            case .release: .release
            case .network: .network
            }
        }
    }

    private enum OwnerKind { case account, release, network }

    private static let none = UInt32.max

    private let keys: RequestLogKeys
    private var entries: [Entry?] = []
    private var freeEntries: [UInt32] = []
    private var table = RequestNameTable()
    private var owners: [Owner] = []
    private var freeOwners: [UInt32] = []
    private var numbers: [OwnerIdentity: UInt32] = [:]
    /// The total of all holders.
    private var used = IdempotencyUsage.none
    private var queue = ExpiryQueue()
    /// Accounts and networks whose weight is above ``lightest``.
    private var heavy: Set<UInt32> = []
    private var lightest = 0
    /// The requests whose beginning is in a segment, of each segment that has some; mostly in order.
    private var begun: [(segment: UInt32, requests: Int)] = []
    /// The first byte of answers that may be kept; nil for any.
    private(set) var slot: UInt8?
    /// Bytes of the records that a log without anything else would have.
    private(set) var liveBytes = 0

    init(keys: RequestLogKeys) { self.keys = keys }

    var count: Int { table.count }

    // MARK: Reading

    func find(_ name: RequestName) -> Entry? { number(of: name).flatMap { entries[Int($0)] } }

    /// All requests, or those of an account.
    func all(of account: Int64? = nil) -> [Entry] {
        guard let account else { return entries.compactMap(\.self) }
        guard let owner = numbers[.account(account)] else { return [] }
        return entries.compactMap { $0 }.filter { $0.scope == owner }
    }

    /// Answers that are sealed under another slot.
    func countSealed(otherThan slot: UInt8) -> Int {
        entries.count { entry in entry.map { $0.slot != 0 && $0.slot != slot } ?? false }
    }

    /// Whether the beginning of a request is in that segment.
    func hasBegun(in segment: UInt32) -> Bool { begun.contains { $0.segment == segment } }

    /// The owners of a request, until the next change of the index.
    func owners(of request: IdempotentRequest) -> Owners {
        let scope = numbers[RequestLogIndex.identity(of: request.scope)]
        if case (.account(let owner), .account(let holder)) = (request.scope, request.holder), owner == holder
        {
            return Owners(scope: scope, holder: scope)
        }
        return Owners(scope: scope, holder: numbers[RequestLogIndex.identity(of: request.holder)])
    }

    /// Whether `owners`, those of the request, may have one more.
    func room(
        for request: IdempotentRequest, of owners: Owners, within bounds: IdempotencyBounds
    ) -> IdempotencyBounds.Room {
        bounds.room(
            for: request.scope, own: use(owners.scope), held: use(owners.holder), used: used)
    }

    /// Whether the answer of a request may be kept.
    func keepsAnswer(
        of entry: Entry, in scope: IdempotencyScope, within bounds: IdempotencyBounds
    ) -> Bool {
        bounds.keepsResponse(for: scope, own: use(entry.scope), held: use(entry.holder), used: used)
    }

    /// The finished requests to forget for `request`, for which `room` was found. If the account has reached
    /// its own bound, these are its own oldest requests. Otherwise they are the oldest of the largest holder
    /// that has any, or else the oldest of all. Empty if all are too young.
    func displaced(
        by request: IdempotentRequest, of owners: Owners, after room: IdempotencyBounds.Room,
        within bounds: IdempotencyBounds
    ) -> [RequestName] {
        let limit = bounds.displaceable(at: request.begun)
        if room.isOfAccount { return owners.scope.map { finished(of: $0, before: limit) } ?? [] }
        find(heavierThan: bounds.fewKeys * IdempotencyBounds.bytesOfKey)
        for candidate in heaviest() {
            let names = finished(of: candidate, before: limit)
            if !names.isEmpty { return names }
        }
        return queue.finished(before: limit, most: IdempotencyBounds.displacedAtOnce) {
            entries[Int($0)]?.status == nil ? nil : entries[Int($0)]?.name
        }
    }

    /// The finished requests of one holder, oldest first.
    private func finished(of holder: UInt32, before limit: Int64) -> [RequestName] {
        var names: [RequestName] = []
        var next = owners[Int(holder)].first
        while names.count < IdempotencyBounds.displacedAtOnce, next != RequestLogIndex.none,
            let entry = entries[Int(next)], entry.begun < limit
        {
            names.append(entry.name)
            next = entry.next
        }
        return names
    }

    private static let mostCandidates = 16

    /// Some of the largest holders, in order. Among equal ones, the holder with the oldest request is first.
    /// There may be ten thousand holders.
    private func heaviest() -> [UInt32] {
        typealias Candidate = (number: UInt32, weight: Int, oldest: Int64)
        func ranks(_ candidate: Candidate, before other: Candidate) -> Bool {
            candidate.weight == other.weight
                ? candidate.oldest < other.oldest : candidate.weight > other.weight
        }
        var found: [Candidate] = []
        for number in heavy {
            let owner = owners[Int(number)]
            guard owner.first != RequestLogIndex.none, let oldest = entries[Int(owner.first)]?.begun else {
                continue
            }
            let candidate = (number, owner.weight, oldest)
            if found.count == RequestLogIndex.mostCandidates {
                guard let last = found.last, ranks(candidate, before: last) else { continue }
                found.removeLast()
            }
            found.insert(candidate, at: found.firstIndex { ranks(candidate, before: $0) } ?? found.count)
        }
        return found.map(\.number)
    }

    private func use(_ number: UInt32?) -> IdempotencyUsage { number.map { owners[Int($0)].use } ?? .none }

    // MARK: Changing

    /// Reserves room for `count` requests, so that growth copies no entries. The memory is used only as
    /// requests are added.
    func reserve(_ count: Int) {
        let count = min(count, RequestLogIndex.mostReserved)
        if entries.capacity < count { entries.reserveCapacity(count) }
    }

    private static let mostReserved = 1 << 21

    /// Bytes of memory for each request, without its owners.
    static let bytesOfRequest =
        MemoryLayout<Entry?>.stride + RequestNameTable.mostBytesOfNumber
        + ExpiryQueue.bytesOfNumber

    /// What the record at that place says.
    func apply(_ record: RequestLogRecord, at place: Place) {
        switch record.content {
        case .begun(let request): begin(request, names: keys.names(of: request), owners: nil, at: place)
        case .finished(let name, let begun, let status, let slot, _):
            finish(
                name, begun: begun, status: status, slot: slot,
                body: place.after(record.bytes), bytes: record.bodyBytes)
        case .abandoned(let name, let begun):
            guard let number = number(of: name), let entry = entries[Int(number)], entry.begun == begun,
                entry.status == nil
            else { return }
            remove(number)
        case .displaced(let names): for name in names { number(of: name).map { remove($0) } }
        case .forgotten(let time):
            while let first = queue.first, first.begun < time { remove(first.number) }
        case .erased(let account):
            guard let owner = numbers[.account(account)] else { return }
            for (number, entry) in entries.enumerated() where entry?.scope == owner { remove(UInt32(number)) }
        case .slot(let slot): self.slot = slot
        case .continued: break
        }
    }

    /// The number of requests that began before that time.
    func count(before time: Int64) -> Int {
        guard let first = queue.first, first.begun < time else { return 0 }
        return entries.count { entry in entry.map { $0.begun < time } ?? false }
    }

    /// A request of that name is replaced, unless it is a copy of the same beginning, made to let go of a
    /// segment.
    /// `owners` are those of the request; nil to look for them.
    func begin(
        _ request: IdempotentRequest, names: RequestNames, owners known: Owners?, at place: Place
    ) {
        var known = known
        if let number = number(of: names.request), let entry = entries[Int(number)] {
            if entry.begun == request.begun, entry.digest == names.digest {
                count(-1, in: entry.record.segment)
                entries[Int(number)]?.record = place
                return count(1, in: place.segment)
            }
            remove(number)
            known = nil
        }
        let scope = known?.scope ?? owner(RequestLogIndex.identity(of: request.scope))
        let holder = known?.holder ?? owner(RequestLogIndex.identity(of: request.holder))
        let entry = Entry(
            name: names.request, digest: names.digest, begun: request.begun, scope: scope, holder: holder,
            record: place)
        let number = freeEntries.popLast() ?? UInt32(entries.count)
        if Int(number) == entries.count { entries.append(entry) } else { entries[Int(number)] = entry }
        table.insert(number, hash: entry.name.low) { entries[Int($0)]?.name.low ?? 0 }
        queue.add(number, begun: request.begun)
        count(1, in: place.segment)
        use(IdempotencyUsage(keys: 1, bytes: 0), of: entry)
        liveBytes += RequestLogIndex.recordBytes
    }

    /// About the bytes of a beginning.
    private static let recordBytes = 192

    func finish(
        _ name: RequestName, begun: Int64, status: Int32, slot: UInt8, body: Place, bytes: Int
    ) {
        guard let number = number(of: name), var entry = entries[Int(number)], entry.begun == begun else {
            return
        }
        let isCopy = entry.status != nil
        // The first answer stays; a copy of it takes its place, sealed anew or in another segment.
        guard !isCopy || entry.status == status else { return }
        let change = RequestLogIndex.use(bytes) - RequestLogIndex.use(Int(entry.bodyBytes))
        entry.status = status
        entry.slot = slot
        entry.body = body
        entry.bodyBytes = UInt32(bytes)
        entries[Int(number)] = entry
        use(IdempotencyUsage(keys: 0, bytes: change), of: entry)
        liveBytes += change
        guard !isCopy else { return }
        link(number)
        queue.count(1, begun: entry.begun)
    }

    /// Bytes of an answer, of those that are stored: four are its head.
    private static func use(_ bytes: Int) -> Int { max(bytes - 4, 0) }

    private func remove(_ number: UInt32) {
        guard let entry = entries[Int(number)] else { return }
        if entry.status != nil {
            unlink(number)
            queue.count(-1, begun: entry.begun)
        }
        queue.remove(number, begun: entry.begun)
        table.remove(number, hash: entry.name.low) { entries[Int($0)]?.name.low ?? 0 }
        entries[Int(number)] = nil
        freeEntries.append(number)
        count(-1, in: entry.record.segment)
        let bytes = RequestLogIndex.use(Int(entry.bodyBytes))
        use(IdempotencyUsage(keys: -1, bytes: -bytes), of: entry)
        liveBytes -= RequestLogIndex.recordBytes + bytes
        if owners[Int(entry.scope)].use.keys == 0 { release(entry.scope) }
        if entry.holder != entry.scope, owners[Int(entry.holder)].use.keys == 0 { release(entry.holder) }
    }

    private func count(_ change: Int, in segment: UInt32) {
        guard let place = begun.lastIndex(where: { $0.segment == segment }) else {
            return begun.append((segment, change))
        }
        begun[place].requests += change
        if begun[place].requests == 0 { begun.remove(at: place) }
    }

    private func number(of name: RequestName) -> UInt32? {
        table.find(hash: name.low) { entries[Int($0)]?.name == name }
    }

    // MARK: Owners

    private static func identity(of scope: IdempotencyScope) -> OwnerIdentity {
        switch scope {
        case .account(let number): .account(number)
        case .release(let id): .release(id)
        }
    }

    private static func identity(of holder: IdempotencyHolder) -> OwnerIdentity {
        switch holder {
        case .account(let number): .account(number)
        case .network(let bytes): .network(bytes)
        }
    }

    private func owner(_ identity: OwnerIdentity) -> UInt32 {
        if let number = numbers[identity] { return number }
        let number = freeOwners.popLast() ?? UInt32(owners.count)
        let owner = Owner(identity: identity, kind: identity.kind)
        if Int(number) == owners.count { owners.append(owner) } else { owners[Int(number)] = owner }
        numbers[identity] = number
        return number
    }

    private func release(_ number: UInt32) {
        guard !owners[Int(number)].isGone else { return }
        numbers[owners[Int(number)].identity] = nil
        owners[Int(number)].isGone = true
        heavy.remove(number)
        freeOwners.append(number)
    }

    /// Adds to the usage of the request's owners and to the total.
    private func use(_ change: IdempotencyUsage, of entry: Entry) {
        used = used + change
        use(change, of: entry.scope)
        if entry.holder != entry.scope { use(change, of: entry.holder) }
    }

    private func use(_ change: IdempotencyUsage, of number: UInt32) {
        owners[Int(number)].use = owners[Int(number)].use + change
        weigh(number)
    }

    private func weigh(_ number: UInt32) {
        let owner = Int(number)
        let isHeavy = owners[owner].weight > lightest
        guard owners[owner].kind != .release, owners[owner].isHeavy != isHeavy else { return }
        owners[owner].isHeavy = isHeavy
        if isHeavy { heavy.insert(number) } else { heavy.remove(number) }
    }

    /// The bound is a setting: as a rule it is always the same.
    private func find(heavierThan weight: Int) {
        guard weight != lightest else { return }
        lightest = weight
        for number in owners.indices where !owners[number].isGone { weigh(UInt32(number)) }
    }

    // MARK: The finished requests of a holder

    private func link(_ number: UInt32) {
        guard let entry = entries[Int(number)] else { return }
        let holder = Int(entry.holder)
        // Requests end about in the order in which they began.
        var before = owners[holder].last
        while before != RequestLogIndex.none, let other = entries[Int(before)], other.begun > entry.begun {
            before = other.previous
        }
        let after =
            before == RequestLogIndex.none
            ? owners[holder].first : entries[Int(before)]?.next ?? RequestLogIndex.none
        entries[Int(number)]?.previous = before
        entries[Int(number)]?.next = after
        if before == RequestLogIndex.none {
            owners[holder].first = number
        } else {
            entries[Int(before)]?.next = number
        }
        if after == RequestLogIndex.none {
            owners[holder].last = number
        } else {
            entries[Int(after)]?.previous = number
        }
    }

    private func unlink(_ number: UInt32) {
        guard let entry = entries[Int(number)] else { return }
        let holder = Int(entry.holder)
        if entry.previous == RequestLogIndex.none {
            owners[holder].first = entry.next
        } else {
            entries[Int(entry.previous)]?.next = entry.next
        }
        if entry.next == RequestLogIndex.none {
            owners[holder].last = entry.previous
        } else {
            entries[Int(entry.next)]?.previous = entry.previous
        }
    }
}

/// Numbers by the names that they stand for: a table with open addressing, at most half full.
private struct RequestNameTable {
    /// A number plus one; 0 where there is none.
    private var places = [UInt32](repeating: 0, count: 1 << 10)
    private(set) var count = 0

    /// Between a quarter and a half of the slots are used.
    static let mostBytesOfNumber = 4 * MemoryLayout<UInt32>.stride

    private var mask: Int { places.count - 1 }

    func find(hash: UInt64, where matches: (UInt32) -> Bool) -> UInt32? {
        var place = Int(truncatingIfNeeded: hash) & mask
        while places[place] != 0 {
            if matches(places[place] - 1) { return places[place] - 1 }
            place = (place + 1) & mask
        }
        return nil
    }

    mutating func insert(_ number: UInt32, hash: UInt64, hashOf: (UInt32) -> UInt64) {
        if 2 * (count + 1) > places.count {
            let old = places
            places = [UInt32](repeating: 0, count: 2 * old.count)
            for other in old where other != 0 { put(other, hash: hashOf(other - 1)) }
        }
        put(number + 1, hash: hash)
        count += 1
    }

    private mutating func put(_ value: UInt32, hash: UInt64) {
        var place = Int(truncatingIfNeeded: hash) & mask
        while places[place] != 0 { place = (place + 1) & mask }
        places[place] = value
    }

    /// Moves later entries of the same run back, so that each is still found from its own place on.
    mutating func remove(_ number: UInt32, hash: UInt64, hashOf: (UInt32) -> UInt64) {
        var place = Int(truncatingIfNeeded: hash) & mask
        while places[place] != number + 1 {
            if places[place] == 0 { return }
            place = (place + 1) & mask
        }
        var next = (place + 1) & mask
        while places[next] != 0 {
            let home = Int(truncatingIfNeeded: hashOf(places[next] - 1)) & mask
            if (next - home) & mask >= (next - place) & mask {
                places[place] = places[next]
                place = next
            }
            next = (next + 1) & mask
        }
        places[place] = 0
        count -= 1
    }
}

/// Requests by the second in which they began.
private struct ExpiryQueue {
    private struct Second {
        let begun: Int64
        var numbers: [UInt32]
        /// The number of them that have an outcome.
        var finished = 0
    }

    static let bytesOfNumber = 2 * MemoryLayout<UInt32>.stride

    /// In order; the first `gone` of them have no more requests, and the next one has some.
    private var seconds: [Second] = []
    private var gone = 0

    mutating func add(_ number: UInt32, begun: Int64) {
        let place = if let last = seconds.last, last.begun < begun { seconds.count } else { place(of: begun) }
        if place < seconds.count, seconds[place].begun == begun {
            seconds[place].numbers.append(number)
        } else {
            seconds.insert(Second(begun: begun, numbers: [number]), at: place)
        }
    }

    /// Most requests that are removed before their time are young. A second in the middle that has no more
    /// requests stays until those before it have none.
    mutating func remove(_ number: UInt32, begun: Int64) {
        let place = place(of: begun)
        guard place < seconds.count, seconds[place].begun == begun,
            let index = seconds[place].numbers.lastIndex(of: number),
            let last = seconds[place].numbers.popLast()
        else { return }
        if index < seconds[place].numbers.count { seconds[place].numbers[index] = last }
        while gone < seconds.count, seconds[gone].numbers.isEmpty { gone += 1 }
        guard gone == seconds.count || gone > 1_024 && 2 * gone > seconds.count else { return }
        seconds.removeFirst(gone)
        gone = 0
    }

    /// The place of the first second that is not before that one.
    private func place(of begun: Int64) -> Int {
        var (low, high) = (gone, seconds.count)
        while low < high {
            let middle = low + (high - low) / 2
            if seconds[middle].begun < begun { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Adds `change` to the number of finished requests that began in that second.
    mutating func count(_ change: Int, begun: Int64) {
        let place = place(of: begun)
        guard place < seconds.count, seconds[place].begun == begun else { return }
        seconds[place].finished += change
    }

    /// At most `most` names of finished requests, oldest first. `name` returns nil for other requests.
    func finished(
        before limit: Int64, most: Int, name: (UInt32) -> RequestName?
    ) -> [RequestName] {
        var names: [RequestName] = []
        for second in seconds[gone...] {
            guard second.begun < limit, names.count < most else { break }
            guard second.finished > 0 else { continue }
            for number in second.numbers where names.count < most {
                if let name = name(number) { names.append(name) }
            }
        }
        return names
    }

    /// One of the oldest requests.
    var first: (number: UInt32, begun: Int64)? {
        guard gone < seconds.count, let number = seconds[gone].numbers.last else { return nil }
        return (number, seconds[gone].begun)
    }
}
