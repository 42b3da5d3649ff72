import CountersignGate
import CountersignSeal
import CountersignWire
import Glibc

/// The keyed requests of a day in an append-only log: segments in the data folder, and an index of them in
/// memory. Source: docs/decisions/0061-keyed-request-log.md.
///
/// Several processes may have it open: two servers during a restart, and commands. Each change is made under
/// the lock of a file, after what the others have appended was read, so all see one order of changes.
///
/// Unchecked, because it is sent once and never shared: one thread at a time uses it, which is that of
/// ``LoggedRequests`` after the log was handed to it.
package final class RequestLog: @unchecked Sendable {
    /// Bytes of a segment after which the next one is begun, and the seconds for which one is written.
    private static let segmentBytes = 64 << 20
    private static let segmentSeconds: Int64 = 3_600
    /// Bytes of records that are gone which the log may have beside as many as its live records have.
    private static let idleBytes = 64 << 20
    private static let window = 256 << 10

    private let folder: DataFolder
    private let keys: RequestLogKeys
    private let clock: any TimeSource
    private let lock: RequestLogLock
    private let segmentBytes: Int
    private var segments: [RequestLogSegment] = []
    private var index: RequestLogIndex
    /// What is to be written behind the end of the last segment.
    private var output: [UInt8] = []
    /// The place up to which the last segment is on the disk.
    private var durable = RequestLogSegment.headerBytes
    /// Where the first segment is read on, to let go of it.
    private var cursor: (segment: UInt32, offset: Int) = (0, 0)
    /// Why nothing is written any more: after a write or a sync that failed it is not known what is on the
    /// disk, and to sync again could report success for what is not.
    package private(set) var failure: OperationalError?

    /// Opens the log; makes it if there is none. `segmentBytes` is for tests.
    package init(
        in folder: DataFolder, keys: RequestLogKeys, clock: any TimeSource = SystemTime(),
        segmentBytes: Int = RequestLog.segmentBytes
    ) throws(OperationalError) {
        self.folder = folder
        self.keys = keys
        self.clock = clock
        self.segmentBytes = segmentBytes
        index = RequestLogIndex(keys: keys)
        lock = try RequestLogLock(folder)
        readClosed()
        try lock.take()
        defer { lock.release() }
        try open()
    }

    /// Whether the folder has a log.
    package static func exists(in folder: DataFolder) throws(OperationalError) -> Bool {
        try !RequestLogSegment.numbers(in: folder).isEmpty
    }

    /// The files of the log that have records, oldest first. It takes no key.
    package static func filesWithRecords(in folder: DataFolder) throws(OperationalError) -> [String] {
        var files: [String] = []
        for number in try RequestLogSegment.numbers(in: folder) {
            let path = RequestLogSegment.path(of: number, in: folder)
            if try RequestLogSegment.size(at: path) > RequestLogSegment.headerBytes { files.append(path) }
        }
        return files
    }

    /// Opens the log; nil if there is none.
    package convenience init?(
        ifAnyIn folder: DataFolder, keys: RequestLogKeys
    ) throws(OperationalError) {
        guard try RequestLog.exists(in: folder) else { return nil }
        try self.init(in: folder, keys: keys)
    }

    /// Removes the log. Only where no process uses it, and its requests are elsewhere.
    package static func remove(in folder: DataFolder) throws(OperationalError) {
        let lock = try RequestLogLock(folder)
        try lock.take()
        defer { lock.release() }
        // The oldest first: what is left by a crash in between is a whole log of fewer requests.
        for number in try RequestLogSegment.numbers(in: folder) {
            unlink(RequestLogSegment.path(of: number, in: folder))
        }
        try RequestLogSegment.synchronise(folder)
    }

    // MARK: Opening

    /// Reads what no process changes any more, before the lock is taken, so that others go on meanwhile. What
    /// is not as it should be is judged under the lock.
    private func readClosed() {
        do throws(OperationalError) {
            for number in try RequestLogSegment.numbers(in: folder).dropLast(2) {
                guard segments.last.map({ $0.number + 1 == number }) ?? true,
                    let segment = try RequestLogSegment(opening: number, in: folder, keys: keys)
                else { return forgetAll() }
                segments.append(segment)
                guard try read(to: segment.size()) else { return forgetAll() }
            }
        } catch {
            // For example one that was deleted meanwhile.
            forgetAll()
        }
    }

    private func forgetAll() {
        segments = []
        index = RequestLogIndex(keys: keys)
    }

    private func open() throws(OperationalError) {
        var numbers = try RequestLogSegment.numbers(in: folder)
        if let last = segments.last { numbers.removeAll { $0 <= last.number } }
        var isContinued = !segments.isEmpty
        for (place, number) in numbers.enumerated() {
            let isLast = place == numbers.count - 1
            let former = segments.last
            if let former, number != former.number + 1 {
                throw RequestLog.damage(
                    RequestLogSegment.path(of: former.number + 1, in: folder), what: "is missing")
            }
            let path = RequestLogSegment.path(of: number, in: folder)
            let opened = try RequestLogSegment(opening: number, in: folder, keys: keys)
            // A crash while a segment was made leaves a file that the one before it does not name.
            if isLast, !isContinued, try isUnused(opened, path: path, isOnly: former == nil) {
                unlink(path)
                break
            }
            guard let opened else { throw RequestLog.damage(path, what: "has no valid header") }
            if let former, !isContinued {
                throw RequestLog.damage(former.path, what: "has lost its end")
            }
            segments.append(opened)
            isContinued = try read(to: opened.size())
        }
        if segments.isEmpty {
            segments = [try RequestLogSegment.make(1, in: folder, keys: keys, at: clock.now)]
            return
        }
        if isContinued {
            throw RequestLog.damage(segments[segments.count - 1].path, what: "has lost the next")
        }
        if let torn = try tornBody() {
            segments[segments.count - 1].end = torn
            try segments[segments.count - 1].truncate()
            forgetAll()
            return try open()
        }
        try cutTail()
        try renew()
    }

    /// The first record of the last segment whose body a crash has torn; only what the disk had not confirmed
    /// can be.
    private func tornBody() throws(OperationalError) -> Int? {
        let last = segments[segments.count - 1]
        var bodies: [(record: Int, body: Int, bytes: Int, hash: RequestLogRecord.BodyHash)] = []
        _ = try RequestLog.records(of: last, from: min(durable, last.end), to: last.end) {
            (record, offset, _) in
            if case .finished(_, _, _, _, let hash) = record.content {
                bodies.append((offset, offset + record.bytes, record.bodyBytes, hash))
            }
            return true
        }
        for body in bodies {
            let bytes = try last.read(from: body.body, count: body.bytes)
            if RequestLogRecord.BodyHash(bytes.span, key: last.key) != body.hash { return body.record }
        }
        return nil
    }

    private func isUnused(
        _ segment: RequestLogSegment?, path: String, isOnly: Bool
    ) throws(OperationalError) -> Bool {
        guard try RequestLogSegment.size(at: path) <= RequestLogSegment.headerBytes else { return false }
        return segment == nil || !isOnly
    }

    /// Writes once more what a crash may have left in memory only, so that a sync that failed before, and
    /// whose pages the kernel took for clean, is made good.
    private func renew() throws(OperationalError) {
        let last = segments[segments.count - 1]
        let start = min(max(durable, RequestLogSegment.headerBytes), last.end)
        let bytes = try last.read(from: start, count: last.end - start)
        guard bytes.count == last.end - start else {
            throw RequestLog.damage(last.path, what: "was shortened")
        }
        try last.write(bytes, at: start)
        try last.synchronise()
        durable = last.end
    }

    // MARK: Reading what was appended

    private func catchUp() throws(OperationalError) {
        while true {
            let size = try segments[segments.count - 1].size()
            if size == segments[segments.count - 1].end { return }
            guard size > segments[segments.count - 1].end else {
                throw fail(RequestLog.damage(segments[segments.count - 1].path, what: "was shortened"))
            }
            guard try read(to: size) else { return try cutTail() }
            let number = segments[segments.count - 1].number + 1
            if let first = try RequestLogSegment.numbers(in: folder).first, first > number {
                // Others have let go of segments that this process has not read.
                forgetAll()
                return try open()
            }
            guard let next = try RequestLogSegment(opening: number, in: folder, keys: keys) else {
                throw fail(
                    RequestLog.damage(
                        RequestLogSegment.path(of: number, in: folder), what: "has no valid header"))
            }
            segments.append(next)
            durable = RequestLogSegment.headerBytes
        }
    }

    /// Applies the records of the last segment from its end on. True if the last of them says that another
    /// segment follows.
    private func read(to size: Int) throws(OperationalError) -> Bool {
        let last = segments.count - 1
        let segment = segments[last]
        var isContinued = false
        var seen = durable
        if segment.end == RequestLogSegment.headerBytes { seen = segment.end }
        let end = try RequestLog.records(of: segment, from: segment.end, to: size) { (record, offset, _) in
            index.apply(
                record, at: RequestLogIndex.Place(segment: segment.number, offset: UInt32(offset)))
            seen = max(seen, record.durable)
            isContinued = record.content == .continued
            return !isContinued
        }
        segments[last].end = end
        durable = seen
        return isContinued
    }

    /// Calls `body` with each valid record until it returns false; returns the end of the last one.
    private static func records(
        of segment: RequestLogSegment, from start: Int, to size: Int,
        body: (RequestLogRecord, _ offset: Int, _ bytes: Span<UInt8>) -> Bool
    ) throws(OperationalError) -> Int {
        var (place, first) = (start, start)
        var bytes: [UInt8] = []
        while place < size {
            if place + RequestLogRecord.mostBytes > first + bytes.count, first + bytes.count < size {
                bytes = try segment.read(from: place, count: min(window, size - place))
                first = place
            }
            guard place - first < bytes.count else { break }
            let rest = bytes.span.extracting((place - first)...)
            guard let record = RequestLogRecord(rest, at: place, key: segment.key),
                place + record.bytes + record.bodyBytes <= size
            else { break }
            let offset = place
            place += record.bytes + record.bodyBytes
            if !body(record, offset, rest.extracting(0..<record.bytes)) { break }
        }
        return place
    }

    /// Removes what a crash has left behind the last valid record of the last segment. It is damage, and
    /// stays, if a later record was written after the disk had confirmed what is there.
    private func cutTail() throws(OperationalError) {
        let last = segments[segments.count - 1]
        let size = try last.size()
        guard size > last.end else { return }
        var place = last.end
        var start = place
        var bytes: [UInt8] = []
        while place < size {
            if place + RequestLogRecord.mostBytes > start + bytes.count, start + bytes.count < size {
                bytes = try last.read(from: place, count: min(RequestLog.window, size - place))
                start = place
            }
            guard place - start < bytes.count else { break }
            let rest = bytes.span.extracting((place - start)...)
            if let record = RequestLogRecord(rest, at: place, key: last.key), record.durable > last.end {
                throw fail(RequestLog.damage(last.path, what: "is damaged at byte \(last.end)"))
            }
            place += 1
        }
        try last.truncate()
    }

    private static func damage(_ path: String, what: String) -> OperationalError {
        OperationalError(
            .failed,
            message: "\(path) \(what). It belongs to the log of keyed requests, which is not used like this: "
                + "requests of the last day could be sent to the backend again. Restore it from a backup, "
                + "or see docs/operate/idempotency.md")
    }

    @discardableResult
    private func fail(_ fault: OperationalError) -> OperationalError {
        failure = failure ?? fault
        return fault
    }

    // MARK: Writing

    /// Runs `body` under the lock, after everything that was appended has been read. What it appends is
    /// written when this returns, and on the disk after the next ``synchronise()``. `bytes` is more than
    /// that.
    package func transaction<Result>(
        reserving bytes: Int, _ body: () throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        if let failure { throw failure }
        try lock.take()
        defer { lock.release() }
        try catchUp()
        let last = segments[segments.count - 1]
        let isFull = last.end + bytes > segmentBytes || clock.now - last.made >= RequestLog.segmentSeconds
        if isFull, last.end > RequestLogSegment.headerBytes { try beginSegment() }
        try segments[segments.count - 1].reserve(bytes)
        do {
            let result = try body()
            try flush()
            return result
        } catch {
            // The index already has what is not in the file.
            throw output.isEmpty ? error : fail(error)
        }
    }

    private func flush() throws(OperationalError) {
        guard !output.isEmpty else { return }
        try segments[segments.count - 1].write(output, at: segments[segments.count - 1].end)
        segments[segments.count - 1].end += output.count
        if output.capacity > RequestLog.window {
            output = []
        } else {
            output.removeAll(keepingCapacity: true)
        }
    }

    /// Waits until the disk has all that was appended.
    package func synchronise() throws(OperationalError) { try synchronise(evenIfDurable: false) }

    private func synchronise(evenIfDurable: Bool) throws(OperationalError) {
        if let failure { throw failure }
        let last = segments[segments.count - 1]
        guard durable < last.end || evenIfDurable else { return }
        do {
            try last.synchronise()
        } catch {
            throw fail(error)
        }
        durable = last.end
    }

    private func append(_ content: RequestLogRecord.Content, body: [UInt8] = []) {
        let (place, bytes) = write(content, body: body)
        let record = RequestLogRecord(
            content: content, durable: durable, bytes: bytes, bodyBytes: body.count)
        index.apply(record, at: place)
    }

    /// Leaves a change of the index to the caller; returns the record's place, and its bytes without the
    /// body.
    private func write(
        _ content: RequestLogRecord.Content, body: [UInt8] = []
    ) -> (place: RequestLogIndex.Place, bytes: Int) {
        let (last, before) = (segments.count - 1, output.count)
        let offset = RequestLogRecord.append(
            content, body: body, to: &output, from: segments[last].end, durable: durable,
            key: segments[last].key)
        return (
            RequestLogIndex.Place(segment: segments[last].number, offset: UInt32(offset)),
            output.count - before - body.count
        )
    }

    /// The answer of a request.
    private func append(_ name: RequestName, begun: Int64, status: Int32, slot: UInt8, body: [UInt8]) {
        let hash = RequestLogRecord.BodyHash(body.span, key: segments[segments.count - 1].key)
        let (place, bytes) = write(
            .finished(name, begun: begun, status: status, slot: slot, body: hash), body: body)
        index.finish(
            name, begun: begun, status: status, slot: slot, body: place.after(bytes), bytes: body.count)
    }

    /// The next segment is on the disk before the last one names it.
    private func beginSegment() throws(OperationalError) {
        let last = segments[segments.count - 1]
        try segments[segments.count - 1].reserve(RequestLogRecord.mostBytes)
        // What a process left that was killed here.
        unlink(RequestLogSegment.path(of: last.number + 1, in: folder))
        let next = try RequestLogSegment.make(last.number + 1, in: folder, keys: keys, at: clock.now)
        do {
            RequestLogRecord.append(
                .continued, to: &output, from: last.end, durable: durable, key: last.key)
            try flush()
            try segments[segments.count - 1].synchronise()
        } catch {
            throw fail(error)
        }
        // Blocks that were reserved behind its end are free again.
        try? segments[segments.count - 1].truncate()
        segments.append(next)
        durable = RequestLogSegment.headerBytes
    }

    // MARK: Requests

    /// What becomes of a request: ``IdempotencyState`` before its answer is read.
    enum Beginning: Equatable {
        case begun, unfinished, otherRequest, full
        case finished(RequestLogIndex.Entry)
    }

    /// Bytes to reserve for a beginning, with what gives way to it.
    static let beginningBytes = 3 * RequestLogRecord.mostBytes

    /// Within a transaction; ``Beginning/begun`` holds after the next ``synchronise()``.
    func begin(_ request: IdempotentRequest, within bounds: IdempotencyBounds) -> Beginning {
        let names = keys.names(of: request)
        if let known = find(names) { return known }
        index.reserve(bounds.all.keys)
        var owners = index.owners(of: request)
        guard makeRoom(for: request, of: &owners, within: bounds) else { return .full }
        let (place, _) = write(.begun(request))
        index.begin(request, names: names, owners: owners, at: place)
        return .begun
    }

    /// Forgets finished requests to make room for this one; false if there is still no room.
    private func makeRoom(
        for request: IdempotentRequest, of owners: inout RequestLogIndex.Owners,
        within bounds: IdempotencyBounds
    ) -> Bool {
        // First within the account's bound, then within the total.
        for _ in 0..<2 {
            let room = index.room(for: request, of: owners, within: bounds)
            if case .free = room { return true }
            let displaced = index.displaced(by: request, of: owners, after: room, within: bounds)
            guard !displaced.isEmpty else { return room.admits }
            append(.displaced(displaced))
            owners = index.owners(of: request)
        }
        return index.room(for: request, of: owners, within: bounds).admits
    }

    /// What is known of a request; nil if nothing is.
    func find(_ request: IdempotentRequest) -> Beginning? { find(keys.names(of: request)) }

    private func find(_ names: RequestNames) -> Beginning? {
        guard let entry = index.find(names.request) else { return nil }
        guard entry.digest == names.digest else { return .otherRequest }
        return entry.status == nil ? .unfinished : .finished(entry)
    }

    /// Within a transaction. Only the beginning of this very call gets the answer: if it was forgotten and
    /// the key begun again, the new request stores its own. An answer that is sealed under a master key
    /// that was replaced meanwhile, or for which the bounds have no room, is left out, and only its status
    /// kept.
    func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) {
        guard let entry = unfinished(request), let status = Int32(exactly: answer.status), status >= 0 else {
            return
        }
        let slot = answer.body.first ?? 0
        var isKept = RequestLog.encodedBytes(of: answer) <= RequestLogRecord.mostBodyBytes
        if let current = index.slot, slot != 0, slot != current { isKept = false }
        if !index.keepsAnswer(of: entry, in: request.scope, within: bounds) { isKept = false }
        // The body is written in its place, behind the record that contains its hash.
        let (last, first) = (segments.count - 1, output.count)
        let record = first..<first + RequestLogRecord.finishedBytes
        output.append(contentsOf: repeatElement(0, count: record.count))
        if isKept { RequestLog.encode(answer, to: &output) }
        let bodyBytes = output.count - record.upperBound
        let hash = output.withUnsafeBytes { written in
            let body = UnsafeRawBufferPointer(rebasing: written[record.upperBound...])
            return RequestLogRecord.BodyHash(Span(_unsafeBytes: body), key: segments[last].key)
        }
        let keptSlot = bodyBytes == 0 ? 0 : slot
        let offset = segments[last].end + first
        output.withUnsafeMutableBytes {
            RequestLogRecord.write(
                .finished(entry.name, begun: entry.begun, status: status, slot: keptSlot, body: hash),
                bodyBytes: bodyBytes, at: offset, durable: durable, key: segments[last].key,
                into: UnsafeMutableRawBufferPointer(rebasing: $0[record]))
        }
        let place = RequestLogIndex.Place(segment: segments[last].number, offset: UInt32(offset))
        index.finish(
            entry.name, begun: entry.begun, status: status, slot: keptSlot, body: place.after(record.count),
            bytes: bodyBytes)
    }

    /// Within a transaction.
    func abandon(_ request: IdempotentRequest) {
        guard let entry = unfinished(request) else { return }
        append(.abandoned(entry.name, begun: entry.begun))
    }

    private func unfinished(_ request: IdempotentRequest) -> RequestLogIndex.Entry? {
        let names = keys.names(of: request)
        guard let entry = index.find(names.request), entry.status == nil, entry.begun == request.begun,
            entry.digest == names.digest
        else { return nil }
        return entry
    }

    /// The answer of a request that was finished, once the transaction is over.
    func answer(of entry: RequestLogIndex.Entry) throws(OperationalError) -> StoredAnswer {
        let status = Int(entry.status ?? 0)
        guard entry.bodyBytes > 0 else { return StoredAnswer(status: status, fields: [], body: []) }
        guard let segment = segments.first(where: { $0.number == entry.body.segment }) else {
            throw OperationalError(.failed, message: "\(folder.path): an answer of the request log is gone")
        }
        let bytes = try segment.read(from: Int(entry.body.offset), count: Int(entry.bodyBytes))
        guard bytes.count == Int(entry.bodyBytes), let answer = RequestLog.decode(bytes, status: status)
        else {
            throw OperationalError(
                .failed, message: "\(segment.path): the answer at byte \(entry.body.offset) was altered")
        }
        return answer
    }

    /// Within a transaction: forgets what began before that time; returns how many requests that were.
    @discardableResult
    func forget(before time: Int64) -> Int {
        let count = index.count(before: time)
        if count > 0 { append(.forgotten(before: time)) }
        return count
    }

    /// `fields’ bytes (4) ‖ (length (4) ‖ bytes)… ‖ body`, little-endian; nothing for an answer that is
    /// empty.
    private static func encode(_ answer: StoredAnswer) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(encodedBytes(of: answer))
        encode(answer, to: &bytes)
        return bytes
    }

    private static func encode(_ answer: StoredAnswer, to bytes: inout [UInt8]) {
        guard !answer.fields.isEmpty || !answer.body.isEmpty else { return }
        bytes.append(number: UInt64(encodedBytes(of: answer.fields)), bytes: 4)
        for field in answer.fields {
            bytes.append(number: UInt64(field.name.utf8.count), bytes: 4)
            bytes.append(contentsOf: field.name.utf8)
            bytes.append(number: UInt64(field.value.count), bytes: 4)
            bytes.append(contentsOf: field.value)
        }
        bytes.append(contentsOf: answer.body)
    }

    private static func encodedBytes(of fields: [StoredAnswer.Field]) -> Int {
        fields.reduce(0) { $0 + 8 + $1.name.utf8.count + $1.value.count }
    }

    private static func encodedBytes(of answer: StoredAnswer) -> Int {
        4 + encodedBytes(of: answer.fields) + answer.body.count
    }

    private static func decode(_ bytes: [UInt8], status: Int) -> StoredAnswer? {
        guard bytes.count >= 4 else { return nil }
        let end = 4 + Int(bytes.span.number(at: 0, bytes: 4))
        guard end <= bytes.count else { return nil }
        var parts: [[UInt8]] = []
        var place = 4
        while place < end {
            guard end - place >= 4 else { return nil }
            let count = Int(bytes.span.number(at: place, bytes: 4))
            guard end - place - 4 >= count else { return nil }
            parts.append(Array(bytes[place + 4..<place + 4 + count]))
            place += 4 + count
        }
        guard parts.count.isMultiple(of: 2) else { return nil }
        let fields = stride(from: 0, to: parts.count, by: 2).map {
            StoredAnswer.Field(name: String(decoding: parts[$0], as: UTF8.self), value: parts[$0 + 1])
        }
        return StoredAnswer(status: status, fields: fields, body: Array(bytes[end...]))
    }

    // MARK: Letting go of segments

    /// Changes a sealed answer; nil leaves it as it is.
    typealias Reseal = (_ request: IdempotentRequest, _ sealed: [UInt8]) -> [UInt8]?

    /// Whether more than half of the log is of no use any more.
    var isSpacious: Bool {
        segments.count > 1
            && segments.reduce(0) { $0 + $1.end } > 2 * index.liveBytes + RequestLog.idleBytes
    }

    /// Copies what is live at the beginning of the first segment to the end of the log, about `most` bytes,
    /// and removes the segment once nothing of it is live.
    func carry(most: Int, reseal: Reseal? = nil) throws(OperationalError) {
        try transaction(reserving: most) { () throws(OperationalError) in
            guard segments.count > 1 else { return }
            let copies = try live(most: most)
            let bytes = copies.reduce(0) {
                $0 + 2 * RequestLogRecord.mostBytes + ($1.answer.map { RequestLog.encode($0).count } ?? 0)
            }
            try segments[segments.count - 1].reserve(bytes)
            for copy in copies {
                append(.begun(copy.request))
                guard var answer = copy.answer, let status = Int32(exactly: answer.status) else { continue }
                if let again = answer.body.isEmpty ? nil : reseal?(copy.request, answer.body) {
                    answer.body = again
                }
                let body = RequestLog.encode(answer)
                append(
                    keys.name(of: copy.request), begun: copy.request.begun, status: status,
                    slot: answer.body.first ?? 0, body: body)
            }
        }
        try dropSegments()
    }

    /// The next live requests of the first segment.
    private func live(most: Int) throws(OperationalError) -> [HeldRequest] {
        let first = segments[0]
        if cursor.segment != first.number { cursor = (first.number, RequestLogSegment.headerBytes) }
        var found: [(request: IdempotentRequest, entry: RequestLogIndex.Entry)] = []
        var bytes = 0
        cursor.offset = try RequestLog.records(of: first, from: cursor.offset, to: first.end) {
            (record, offset, _) in
            let place = RequestLogIndex.Place(segment: first.number, offset: UInt32(offset))
            if case .begun(let request) = record.content, let entry = index.find(keys.name(of: request)),
                entry.record == place
            {
                found.append((request, entry))
                bytes += 256 + Int(entry.bodyBytes)
            }
            return bytes < most
        }
        var requests: [HeldRequest] = []
        for (request, entry) in found {
            requests.append(
                HeldRequest(request, answer: entry.status == nil ? nil : try answer(of: entry)))
        }
        return requests
    }

    /// Removes the segments at the beginning in which nothing is live. The copies of what was are on the disk
    /// before, whichever process has made them.
    func dropSegments() throws(OperationalError) {
        guard segments.count > 1, !index.hasBegun(in: segments[0].number) else { return }
        try synchronise(evenIfDurable: true)
        while segments.count > 1, !index.hasBegun(in: segments[0].number) {
            segments.removeFirst().remove()
        }
    }

    /// Copies everything that is live to new segments, and removes the others, so that nothing else is in the
    /// files.
    private func rewrite(
        pausing pause: (_ seconds: Double) -> Void, reseal: Reseal? = nil
    ) throws(OperationalError) {
        let boundary = try transaction(reserving: 0) { () throws(OperationalError) in
            if segments[segments.count - 1].end > RequestLogSegment.headerBytes { try beginSegment() }
            return segments[segments.count - 1].number
        }
        while segments[0].number < boundary {
            try carry(most: 1 << 20, reseal: reseal)
            pause(0.002)
        }
    }

    // MARK: Commands

    /// The requests of an account, oldest first.
    package func requests(of account: Int64) throws(OperationalError) -> [HeldRequest] {
        let entries = try transaction(reserving: 0) { () throws(OperationalError) in index.all(of: account) }
        var requests: [HeldRequest] = []
        for entry in entries.sorted(by: { $0.begun < $1.begun }) { requests.append(try held(entry)) }
        return requests
    }

    /// How many requests the log has.
    package var count: Int { index.count }

    /// All requests, some at a time.
    package func forEachRequest(
        together: Int, _ body: ([HeldRequest]) throws(OperationalError) -> Void
    ) throws(OperationalError) {
        var entries = try transaction(reserving: 0) { () throws(OperationalError) in index.all() }[...]
        while !entries.isEmpty {
            var requests: [HeldRequest] = []
            for entry in entries.prefix(together) { requests.append(try held(entry)) }
            entries = entries.dropFirst(together)
            try body(requests)
        }
    }

    private func held(_ entry: RequestLogIndex.Entry) throws(OperationalError) -> HeldRequest {
        guard let segment = segments.first(where: { $0.number == entry.record.segment }) else {
            throw OperationalError(.failed, message: "\(folder.path): a record of the request log is gone")
        }
        let place = Int(entry.record.offset)
        let bytes = try segment.read(from: place, count: RequestLogRecord.mostBytes)
        guard let record = RequestLogRecord(bytes.span, at: place, key: segment.key),
            case .begun(let request) = record.content
        else { throw RequestLog.damage(segment.path, what: "is damaged at byte \(place)") }
        return HeldRequest(request, answer: entry.status == nil ? nil : try answer(of: entry))
    }

    /// Removes an account's requests and answers from the files.
    package func erase(
        _ account: Int64, pausing pause: (_ seconds: Double) -> Void = { usleep(UInt32($0 * 1e6)) }
    ) throws(OperationalError) {
        try transaction(reserving: RequestLogRecord.mostBytes) { append(.erased(account: account)) }
        try synchronise()
        try rewrite(pausing: pause)
    }

    // MARK: Seals

    /// Answers that are sealed under another slot.
    package func countSealed(otherThan slot: UInt8) throws(OperationalError) -> Int {
        try transaction(reserving: 0) { () throws(OperationalError) in index.countSealed(otherThan: slot) }
    }

    /// Has only answers of that slot kept from here on, and gives the others to `seal`, with their scope and
    /// key. An answer for which it returns nil stays as it is. Then nothing else is in the files. Returns how
    /// many were sealed anew.
    package func sealAgain(
        in slot: UInt8, pausing pause: (_ seconds: Double) -> Void,
        by seal: @escaping (SealedValue) -> [UInt8]?
    ) throws(OperationalError) -> Int {
        try transaction(reserving: RequestLogRecord.mostBytes) { () throws(OperationalError) in
            if index.slot != slot { append(.slot(slot)) }
        }
        try synchronise()
        var count = 0
        try rewrite(pausing: pause) { (request, sealed) in
            guard sealed.first != slot else { return nil }
            let place = SealedValue.Place.idempotentAnswer(scope: "\(request.scope)", key: request.key)
            guard let again = seal(SealedValue(sealed, at: place)) else { return nil }
            count += 1
            return again
        }
        return count
    }
}

/// The lock that every process has while it changes the log. Waits for at most five seconds, so that a
/// process that was stopped while it had the lock stops keyed requests and nothing else.
private final class RequestLogLock {
    private let file: FileDescriptor
    private let path: String

    init(_ folder: DataFolder) throws(OperationalError) {
        path = folder.file("requests.lock")
        let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw RequestLogSegment.fault(errno, at: path, while: "cannot open it") }
        file = FileDescriptor(owning: number)
        _ = KeyFile.giveToFolderOwner(number, path: path)
    }

    func take() throws(OperationalError) {
        var waits = 0
        while flock(file.number, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw RequestLogSegment.fault(errno, at: path, while: "cannot lock it")
            }
            guard waits < 25_000 else {
                throw OperationalError(
                    .unreachable, message: "\(path): another process has had the lock for five seconds")
            }
            waits += 1
            usleep(200)
        }
    }

    func release() { flock(file.number, LOCK_UN) }
}
