import CountersignSchemes
import CountersignWire

/// What a log of keyed requests says, in memory: about 120 bytes for each request. Answers stay in the file.
///
/// It has one owner, and changes only as records say (``apply(_:at:)``), so that each process that reads the
/// same records has the same index.
struct RequestLogIndex {
    /// Where a record, or an answer, is.
    struct Place: Equatable {
        var segment: UInt32
        var offset: UInt32
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

    private struct Owner {
        var identity: OwnerIdentity
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
    }

    private static let none = UInt32.max

    private let keys: RequestLogKeys
    private var entries: [Entry?] = []
    private var freeEntries: [UInt32] = []
    private var table = RequestNameTable()
    private var owners: [Owner?] = []
    private var freeOwners: [UInt32] = []
    private var numbers: [OwnerIdentity: UInt32] = [:]
    private var kinds: [IdempotencyScope.Kind: IdempotencyUsage] = [.account: .none, .release: .none]
    private var queue = ExpiryQueue()
    /// Accounts and networks whose weight is above ``lightest``.
    private var heavy: Set<UInt32> = []
    private var lightest = 0
    /// Requests whose beginning is in that segment.
    private(set) var begun: [UInt32: Int] = [:]
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

    func room(for request: IdempotentRequest, within bounds: IdempotencyBounds) -> IdempotencyBounds.Room {
        bounds.room(
            for: request.scope, own: use(RequestLogIndex.identity(of: request.scope)),
            held: use(RequestLogIndex.identity(of: request.holder)), kinds: kinds)
    }

    /// The finished requests that give way to `request`: the oldest of the holder with the most; for a
    /// request without a session, only of networks, so that it never displaces requests of sessions. None
    /// if none may.
    mutating func displaced(
        by request: IdempotentRequest, within bounds: IdempotencyBounds
    ) -> [RequestName] {
        find(heavierThan: bounds.fewKeys * IdempotencyBounds.bytesOfKey)
        let limit = bounds.displaceable(at: request.begun)
        for candidate in heaviest(beside: request) {
            guard var next = owners[Int(candidate.number)]?.first, next != RequestLogIndex.none else {
                // A holder with unfinished requests only is skipped; one whose requests are all too young
                // ends the search.
                continue
            }
            var names: [RequestName] = []
            while names.count < IdempotencyBounds.displacedAtOnce, next != RequestLogIndex.none,
                let entry = entries[Int(next)], entry.begun < limit
            {
                names.append(entry.name)
                next = entry.next
            }
            return names
        }
        return []
    }

    private static let mostCandidates = 16

    /// Some of the holders with the most, in order. There may be ten thousand of them.
    private func heaviest(beside request: IdempotentRequest) -> [(number: UInt32, weight: Int)] {
        var found: [(number: UInt32, weight: Int)] = []
        for number in heavy {
            guard let owner = owners[Int(number)] else { continue }
            if case .network = request.holder, case .account = owner.identity { continue }
            let weight = owner.weight
            if found.count == RequestLogIndex.mostCandidates {
                guard let last = found.last, weight > last.weight else { continue }
                found.removeLast()
            }
            found.insert((number, weight), at: found.firstIndex { $0.weight < weight } ?? found.count)
        }
        return found
    }

    private func use(_ identity: OwnerIdentity) -> IdempotencyUsage {
        numbers[identity].flatMap { owners[Int($0)]?.use } ?? .none
    }

    // MARK: Changing

    /// What the record at that place says.
    mutating func apply(_ record: RequestLogRecord, at place: Place) {
        switch record.content {
        case .begun(let request): begin(request, at: place)
        case .finished(let name, let begun, let status, let slot, _):
            finish(
                name, begun: begun, status: status, slot: slot,
                body: Place(segment: place.segment, offset: place.offset + UInt32(record.bytes)),
                bytes: record.bodyBytes)
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
    private mutating func begin(_ request: IdempotentRequest, at place: Place) {
        let (name, digest) = (keys.name(of: request), keys.digest(of: request))
        if let number = number(of: name), let entry = entries[Int(number)] {
            if entry.begun == request.begun, entry.digest == digest {
                count(-1, in: entry.record.segment)
                entries[Int(number)]?.record = place
                return count(1, in: place.segment)
            }
            remove(number)
        }
        let scope = owner(RequestLogIndex.identity(of: request.scope))
        let holder = owner(RequestLogIndex.identity(of: request.holder))
        let entry = Entry(
            name: name, digest: digest, begun: request.begun, scope: scope, holder: holder, record: place)
        let number = freeEntries.popLast() ?? UInt32(entries.count)
        if Int(number) == entries.count { entries.append(entry) } else { entries[Int(number)] = entry }
        table.insert(number, hash: name.low) { entries[Int($0)]?.name.low ?? 0 }
        queue.add(number, begun: request.begun)
        count(1, in: place.segment)
        use(IdempotencyUsage(keys: 1, bytes: 0), of: entry)
        liveBytes += RequestLogIndex.recordBytes
    }

    /// About the bytes of a beginning.
    private static let recordBytes = 192

    private mutating func finish(
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
        if !isCopy { link(number) }
    }

    /// Bytes of an answer, of those that are stored: four are its head.
    private static func use(_ bytes: Int) -> Int { max(bytes - 4, 0) }

    private mutating func remove(_ number: UInt32) {
        guard let entry = entries[Int(number)] else { return }
        if entry.status != nil { unlink(number) }
        queue.remove(number, begun: entry.begun)
        table.remove(number, hash: entry.name.low) { entries[Int($0)]?.name.low ?? 0 }
        entries[Int(number)] = nil
        freeEntries.append(number)
        count(-1, in: entry.record.segment)
        let bytes = RequestLogIndex.use(Int(entry.bodyBytes))
        use(IdempotencyUsage(keys: -1, bytes: -bytes), of: entry)
        liveBytes -= RequestLogIndex.recordBytes + bytes
        for owner in Set([entry.scope, entry.holder]) where owners[Int(owner)]?.use.keys == 0 {
            release(owner)
        }
    }

    private mutating func count(_ change: Int, in segment: UInt32) {
        begun[segment, default: 0] += change
        if begun[segment] == 0 { begun[segment] = nil }
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

    private mutating func owner(_ identity: OwnerIdentity) -> UInt32 {
        if let number = numbers[identity] { return number }
        let number = freeOwners.popLast() ?? UInt32(owners.count)
        let owner = Owner(identity: identity)
        if Int(number) == owners.count { owners.append(owner) } else { owners[Int(number)] = owner }
        numbers[identity] = number
        return number
    }

    private mutating func release(_ number: UInt32) {
        guard let owner = owners[Int(number)] else { return }
        numbers[owner.identity] = nil
        owners[Int(number)] = nil
        heavy.remove(number)
        freeOwners.append(number)
    }

    /// Adds to what the owners of the request, and its kind, have.
    private mutating func use(_ change: IdempotencyUsage, of entry: Entry) {
        let kind: IdempotencyScope.Kind =
            if case .account = owners[Int(entry.scope)]?.identity { .account } else { .release }
        kinds[kind, default: .none] = kinds[kind, default: .none] + change
        use(change, of: entry.scope)
        if entry.holder != entry.scope { use(change, of: entry.holder) }
    }

    private mutating func use(_ change: IdempotencyUsage, of number: UInt32) {
        guard var owner = owners[Int(number)] else { return }
        owner.use = owner.use + change
        owners[Int(number)] = owner
        weigh(number, owner: owner)
    }

    private mutating func weigh(_ number: UInt32, owner: Owner) {
        if case .release = owner.identity { return }
        if owner.weight > lightest { heavy.insert(number) } else { heavy.remove(number) }
    }

    /// The bound is a setting: as a rule it is always the same.
    private mutating func find(heavierThan weight: Int) {
        guard weight != lightest else { return }
        lightest = weight
        for (number, owner) in owners.enumerated() {
            if let owner { weigh(UInt32(number), owner: owner) }
        }
    }

    // MARK: The finished requests of a holder

    private mutating func link(_ number: UInt32) {
        guard let entry = entries[Int(number)], var owner = owners[Int(entry.holder)] else { return }
        // Requests end about in the order in which they began.
        var before = owner.last
        while before != RequestLogIndex.none, let other = entries[Int(before)], other.begun > entry.begun {
            before = other.previous
        }
        let after = before == RequestLogIndex.none ? owner.first : entries[Int(before)]?.next
        entries[Int(number)]?.previous = before
        entries[Int(number)]?.next = after ?? RequestLogIndex.none
        if before == RequestLogIndex.none {
            owner.first = number
        } else {
            entries[Int(before)]?.next = number
        }
        if let after, after != RequestLogIndex.none {
            entries[Int(after)]?.previous = number
        } else {
            owner.last = number
        }
        owners[Int(entry.holder)] = owner
    }

    private mutating func unlink(_ number: UInt32) {
        guard let entry = entries[Int(number)], var owner = owners[Int(entry.holder)] else { return }
        if entry.previous == RequestLogIndex.none {
            owner.first = entry.next
        } else {
            entries[Int(entry.previous)]?.next = entry.next
        }
        if entry.next == RequestLogIndex.none {
            owner.last = entry.previous
        } else {
            entries[Int(entry.next)]?.previous = entry.previous
        }
        owners[Int(entry.holder)] = owner
    }
}

/// Numbers by the names that they stand for: a table with open addressing, at most half full.
private struct RequestNameTable {
    /// A number plus one; 0 where there is none.
    private var places = [UInt32](repeating: 0, count: 1 << 10)
    private(set) var count = 0

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
    /// In order; the first `gone` of them have no more requests.
    private var seconds: [Int64] = []
    private var gone = 0
    private var numbers: [Int64: [UInt32]] = [:]

    mutating func add(_ number: UInt32, begun: Int64) {
        if numbers[begun] == nil {
            var place = seconds.count
            while place > gone, seconds[place - 1] > begun { place -= 1 }
            seconds.insert(begun, at: place)
        }
        numbers[begun, default: []].append(number)
    }

    /// Most requests that are removed before their time are young.
    mutating func remove(_ number: UInt32, begun: Int64) {
        guard let index = numbers[begun]?.lastIndex(of: number), let last = numbers[begun]?.popLast() else {
            return
        }
        if let count = numbers[begun]?.count, index < count { numbers[begun]?[index] = last }
        guard numbers[begun]?.isEmpty ?? true else { return }
        numbers[begun] = nil
        var place = gone..<seconds.count
        while !place.isEmpty, seconds[place.lowerBound] != begun {
            let middle = place.lowerBound + place.count / 2
            place = seconds[middle] <= begun ? middle..<place.upperBound : place.lowerBound..<middle
            if place.count == 1 { break }
        }
        guard let found = place.first, seconds[found] == begun else { return }
        if found == gone { gone += 1 } else { seconds.remove(at: found) }
        guard gone > 1_024, 2 * gone > seconds.count else { return }
        seconds.removeFirst(gone)
        gone = 0
    }

    /// One of the oldest requests.
    var first: (number: UInt32, begun: Int64)? {
        guard gone < seconds.count, let number = numbers[seconds[gone]]?.last else { return nil }
        return (number, seconds[gone])
    }
}
