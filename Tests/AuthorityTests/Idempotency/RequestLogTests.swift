import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import ScriptedClock
import Testing

@testable import CountersignAuthority
@testable import CountersignSQL

/// The log of keyed requests on its disk: what a crash leaves behind is cut off, damage is not used, and
/// several processes, letting go of segments, erasure and sealing anew lose nothing that is to stay.
@Suite struct RequestLogTests {
    private let folder = TemporaryFolder()

    private static func request(_ number: Int, of account: Int64 = 1, begun: Int64 = 1_000)
        -> IdempotentRequest
    {
        IdempotentRequest(
            scope: .account(account), key: SHA256.digest([UInt8](String(number).utf8).span).copied,
            digest: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32), begun: begun)
    }

    private static func answer(_ number: Int, bytes: Int = 40) -> StoredAnswer {
        StoredAnswer(
            status: 200 + number % 100, fields: [], body: [UInt8](repeating: 1, count: bytes + number % 7))
    }

    private func open(_ place: String? = nil, segmentBytes: Int = 1 << 20) throws -> RequestLog {
        try .test(place ?? folder.data, segmentBytes: segmentBytes)
    }

    private static func begin(_ log: RequestLog, _ request: IdempotentRequest) throws -> RequestLog.Beginning
    {
        let beginning = try log.transaction(reserving: 4_096) { log.begin(request, within: .init()) }
        try log.synchronise()
        return beginning
    }

    private static func finish(
        _ log: RequestLog, _ request: IdempotentRequest, _ answer: StoredAnswer,
        _ bounds: IdempotencyBounds = .init()
    ) throws {
        try log.transaction(reserving: 8_192 + answer.body.count) {
            log.finish(request, with: answer, within: bounds)
        }
    }

    private static func forget(_ log: RequestLog, before time: Int64) throws -> Int {
        let count = try log.transaction(reserving: 4_096) { log.forget(before: time) }
        try log.dropSegments()
        return count
    }

    /// What the log says, as text.
    private static func state(_ log: RequestLog, _ request: IdempotentRequest) throws -> String {
        switch try log.transaction(reserving: 0, { log.find(request) }) {
        case nil: return "new"
        case .begun?, .full?, .otherRequest?: return "wrong"
        case .unfinished?: return "unfinished"
        case .finished(let entry)?:
            let answer = try log.answer(of: entry)
            return "\(answer.status), \(answer.body.count)"
        }
    }

    private func file(_ number: Int = 1, in data: String? = nil) -> String {
        "\(data ?? folder.data)/requests-000000000\(number).log"
    }

    private func segments() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.data).filter { $0.hasSuffix(".log") }
            .sorted()
    }

    /// Records of each kind; the places at which they end, and what the log says then of the requests.
    private func filled() throws -> (requests: [IdempotentRequest], ends: [(end: Int, states: [String])]) {
        let log = try open()
        let requests = (0..<4).map { Self.request($0) }
        var ends: [(end: Int, states: [String])] = []
        func note() throws {
            let size = try FileManager.default.attributesOfItem(atPath: file())[.size] as? Int ?? 0
            ends.append((size, try requests.map { try Self.state(log, $0) }))
        }
        try note()
        for request in requests {
            #expect(try Self.begin(log, request) == .begun)
            try note()
        }
        try Self.finish(log, requests[0], Self.answer(0))
        try note()
        try log.transaction(reserving: 4_096) { log.abandon(requests[1]) }
        try note()
        try Self.finish(log, requests[2], Self.answer(2))
        try note()
        try log.synchronise()
        #expect(try Self.begin(log, Self.request(9, begun: 2_000)) == .begun)
        try note()
        return (requests, ends)
    }

    @Test("cut off at any byte, it has what was whole, and takes more")
    func tornAnywhere() throws {
        let (requests, ends) = try filled()
        let whole = try #require(FileManager.default.contents(atPath: file()))
        #expect(ends.last?.end == whole.count && ends.count == 9)
        let copy = TemporaryFolder()
        try FileManager.default.createDirectory(atPath: copy.data, withIntermediateDirectories: true)
        for length in 0...whole.count {
            // What a crash leaves behind may also be zeros.
            let rest =
                length > 64 && length.isMultiple(of: 3) ? Data(count: min(whole.count - length, 100)) : Data()
            try (whole.prefix(length) + rest).write(to: URL(fileURLWithPath: file(in: copy.data)))
            let log = try open(copy.data)
            let expected = ends.last { $0.end <= length }?.states ?? requests.map { _ in "new" }
            #expect(try requests.map { try Self.state(log, $0) } == expected, "\(length) bytes")
            let more = Self.request(77)
            guard length.isMultiple(of: 10) else { continue }
            #expect(try Self.begin(log, more) == .begun)
            let again = try open(copy.data)
            #expect(
                try requests.map { try Self.state(again, $0) } == expected
                    && Self.state(again, more) == "unfinished")
        }
    }

    @Test("altered at any byte of what the disk had confirmed, it is not used")
    func damagedAnywhere() throws {
        let (_, ends) = try filled()
        let whole = try #require(FileManager.default.contents(atPath: file()))
        // The last record tells that all before it was confirmed.
        let confirmed = ends[ends.count - 2].end
        let bodies = [ends[5].end - 44..<ends[5].end, ends[7].end - 46..<ends[7].end]
        let copy = TemporaryFolder()
        try FileManager.default.createDirectory(atPath: copy.data, withIntermediateDirectories: true)
        for place in 0..<confirmed {
            // An answer is authenticated by its seal.
            if bodies.contains(where: { $0.contains(place) }) { continue }
            var altered = whole
            altered[place] ^= 0x10
            try altered.write(to: URL(fileURLWithPath: file(in: copy.data)))
            let fault = #expect(throws: OperationalError.self, "byte \(place)") { try open(copy.data) }
            #expect(fault?.message.contains(file(in: copy.data)) == true)
            #expect(
                FileManager.default.contents(atPath: file(in: copy.data)) == altered, "it was not touched")
        }
    }

    @Test("a segment that is missing, foreign or without its end is damage")
    func segmentsBelongTogether() throws {
        let log = try open(segmentBytes: 2_000)
        for number in 0..<30 { #expect(try Self.begin(log, Self.request(number)) == .begun) }
        let names = try segments()
        #expect(names.count > 3)
        func fails(_ change: (_ data: String) throws -> Void) throws {
            let copy = TemporaryFolder()
            try FileManager.default.createDirectory(atPath: copy.path, withIntermediateDirectories: true)
            try FileManager.default.copyItem(atPath: folder.data, toPath: copy.data)
            try change(copy.data)
            #expect(throws: OperationalError.self) { try open(copy.data) }
        }
        try fails { try FileManager.default.removeItem(atPath: "\($0)/\(names[1])") }
        try fails { try FileManager.default.removeItem(atPath: "\($0)/\(names[names.count - 1])") }
        try fails { data in
            try FileManager.default.removeItem(atPath: "\(data)/\(names[2])")
            try FileManager.default.copyItem(atPath: "\(data)/\(names[1])", toPath: "\(data)/\(names[2])")
        }
        try fails { data in
            let handle = try #require(FileHandle(forWritingAtPath: "\(data)/\(names[0])"))
            try handle.truncate(atOffset: 150)
        }
        #expect(throws: OperationalError.self, "another deployment's") {
            try RequestLog(
                in: DataFolder(folder.data, absence: .fail),
                keys: RequestLogKeys(Secret(copying: [UInt8](repeating: 8, count: 32).span)))
        }
        #expect(throws: Never.self) { try open() }
    }

    @Test("a crash while a segment is begun leaves nothing that matters")
    func crashBetweenSegments() throws {
        let log = try open()
        #expect(try Self.begin(log, Self.request(1)) == .begun)
        for content in [
            Data(), Data(count: 64), try #require(FileManager.default.contents(atPath: file())).prefix(64),
        ] {
            try content.write(to: URL(fileURLWithPath: file(2)))
            #expect(try Self.state(open(), Self.request(1)) == "unfinished")
            #expect(try segments().count == 1)
        }
    }

    @Test("two processes see each other's changes, also of segments")
    func twoProcesses() throws {
        let logs = [try open(segmentBytes: 3_000), try open(segmentBytes: 3_000)]
        for number in 0..<200 {
            let (one, other) = (logs[number % 2], logs[1 - number % 2])
            let request = Self.request(number)
            #expect(try Self.begin(one, request) == .begun)
            #expect(try Self.state(other, request) == "unfinished")
            if number.isMultiple(of: 3) {
                try Self.finish(other, request, Self.answer(number))
                #expect(try Self.state(one, request) == Self.state(other, request))
            }
            if number.isMultiple(of: 10) { try (number.isMultiple(of: 20) ? one : other).carry(most: 700) }
        }
        #expect(try segments().count > 3)
        for log in logs + [try open()] {
            for number in 0..<200 {
                let expected =
                    number.isMultiple(of: 3) ? "\(200 + number % 100), \(40 + number % 7)" : "unfinished"
                #expect(try Self.state(log, Self.request(number)) == expected)
            }
        }
    }

    @Test("a process that is killed while it writes does not disturb another")
    func killedBeside() throws {
        let log = try open()
        #expect(try Self.begin(log, Self.request(1)) == .begun)
        let handle = try #require(FileHandle(forWritingAtPath: file()))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(repeating: 9, count: 70))
        #expect(try Self.begin(log, Self.request(2)) == .begun)
        #expect(try Self.state(open(), Self.request(2)) == "unfinished")
        try handle.truncate(atOffset: 70)
        #expect(throws: OperationalError.self, "it was shortened") { try Self.begin(log, Self.request(3)) }
        try handle.truncate(atOffset: 700)
        #expect(throws: OperationalError.self, "until a restart") { try Self.begin(log, Self.request(3)) }
    }

    @Test("what is forgotten frees its segments, and copies of what is not keep it")
    func lettingGo() throws {
        let log = try open(segmentBytes: 4_000)
        for number in 0..<100 {
            let request = Self.request(number, begun: Int64(number))
            #expect(try Self.begin(log, request) == .begun)
            if number.isMultiple(of: 2) { try Self.finish(log, request, Self.answer(number)) }
        }
        let before = try segments().count
        #expect(try Self.forget(log, before: 50) == 50)
        #expect(try segments().count < before)
        // All but one of a segment: the one that is left is carried on.
        for number in stride(from: 51, to: 100, by: 2) where number != 75 {
            try log.transaction(reserving: 4_096) { log.abandon(Self.request(number, begun: Int64(number))) }
        }
        for _ in 0..<400 { try log.carry(most: 300) }
        for opened in [log, try open()] {
            for number in 0..<100 {
                let state = try Self.state(opened, Self.request(number, begun: Int64(number)))
                let isFinished = number >= 50 && number.isMultiple(of: 2)
                #expect(
                    state
                        == (isFinished
                            ? "\(200 + number % 100), \(40 + number % 7)"
                            : number == 75 ? "unfinished" : "new"))
            }
        }
        #expect(try Self.forget(log, before: 1_000) == 26)
        #expect(try segments().count == 1)
    }

    @Test("an erased account is in no file, and others are as they were")
    func erasure() throws {
        let log = try open(segmentBytes: 4_000)
        let beside = try open(segmentBytes: 4_000)
        for number in 0..<60 {
            let request = Self.request(number, of: Int64(number % 3))
            #expect(try Self.begin(log, request) == .begun)
            if number.isMultiple(of: 2) { try Self.finish(log, request, Self.answer(number)) }
        }
        let key = Data(Self.request(31, of: 1).key)
        func isInFiles() throws -> Bool {
            try segments().contains {
                FileManager.default.contents(atPath: "\(folder.data)/\($0)")?.range(of: key) != nil
            }
        }
        #expect(try isInFiles())
        #expect(try log.requests(of: 1).count == 20)
        try log.erase(1, pausing: { _ in })
        #expect(try !isInFiles() && log.requests(of: 1).isEmpty)
        for opened in [log, beside, try open()] {
            for number in 0..<60 {
                let state = try Self.state(opened, Self.request(number, of: Int64(number % 3)))
                let expected =
                    number.isMultiple(of: 2) ? "\(200 + number % 100), \(40 + number % 7)" : "unfinished"
                #expect(state == (number % 3 == 1 ? "new" : expected))
            }
        }
        #expect(try beside.requests(of: 2).map(\.request) == log.requests(of: 2).map(\.request))
    }

    @Test("sealed anew, no answer of the former slot is in a file or is taken any more")
    func sealing() throws {
        let log = try open(segmentBytes: 4_000)
        let beside = try open(segmentBytes: 4_000)
        for number in 0..<40 {
            #expect(try Self.begin(log, Self.request(number)) == .begun)
            if number < 20 { try Self.finish(log, Self.request(number), Self.answer(number)) }
        }
        #expect(try beside.countSealed(otherThan: 1) == 0 && beside.countSealed(otherThan: 2) == 20)
        let count = try log.sealAgain(in: 2, pausing: { _ in }) { value in
            guard case .idempotentAnswer("account 1", let key) = value.place, key.count == 32 else {
                return nil
            }
            // One does not open.
            return value.sealed.count == 41 ? nil : [2] + value.sealed.dropFirst()
        }
        let left = (0..<20).count { $0 % 7 == 1 }
        #expect(count == 20 - left)
        #expect(try log.countSealed(otherThan: 2) == left && beside.countSealed(otherThan: 2) == left)
        let answer = Self.answer(30)
        try Self.finish(beside, Self.request(30), answer)
        #expect(try Self.state(log, Self.request(30)) == "\(answer.status), 0", "only its status is kept")
        try Self.finish(beside, Self.request(31), StoredAnswer(status: 299, fields: [], body: [2, 3]))
        #expect(try Self.state(open(), Self.request(31)) == "299, 2")
        for number in 0..<20 {
            #expect(try Self.state(open(), Self.request(number)) == "\(200 + number), \(40 + number % 7)")
        }
    }

    /// 2,000 requests a second for the time that none is forgotten, at the default bounds.
    @Test func theIndexHasABoundInMemory() {
        let bounds = IdempotencyBounds()
        let needed = 2_000 * bounds.floor
        #expect(bounds.all.keys * 7 / 8 >= needed)
        let most = bounds.all.keys * RequestLogIndex.bytesOfRequest
        print(
            """
            measured keyed requests: \(RequestLogIndex.bytesOfRequest) bytes each, \(most >> 20) MiB at the \
            bound
            """)
        #expect(most <= 200_000_000)
    }

    /// Random calls, compared with SQLite's implementation after each one, on two processes, with copies of
    /// what is live and anew from the files.
    @Test(arguments: 1...4)
    func likeRows(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let rows = SQLStore(path: try DataFolder(folder.data, absence: .create).database)
        try rows.prepare()
        defer { rows.close() }
        var logs = [try open(segmentBytes: 8_000), try open(segmentBytes: 8_000)]
        var bounds = IdempotencyBounds()
        bounds.all = IdempotencyUsage(keys: 120, bytes: 40_000)
        bounds.account = IdempotencyUsage(keys: 20, bytes: 4_000)
        bounds.fewKeys = 4
        bounds.floor = 300
        func below(_ most: UInt64) -> Int { Int(random.next() % most) }
        var begun: [IdempotentRequest] = []
        for step in 0..<1_500 {
            let log = logs[below(2)]
            switch below(12) {
            case 0...5:
                let isAccount = below(3) > 0
                let scope: IdempotencyScope =
                    isAccount ? .account(Int64(below(8))) : .release(try #require(KeyID("r_\(below(4))")))
                var request = IdempotentRequest(
                    scope: scope, key: [UInt8(below(40))], digest: [UInt8(below(8) == 0 ? 1 : 2)],
                    begun: Int64(1_000 + step))
                if !isAccount { request.holder = .network([10, 0, 0, UInt8(below(5))]) }
                let expected = try rows.begin(request, within: bounds)
                let beginning = try log.transaction(reserving: 4_096) { log.begin(request, within: bounds) }
                let state: IdempotencyState =
                    switch beginning {
                    case .begun: .begun
                    case .unfinished: .unfinished
                    case .otherRequest: .otherRequest
                    case .full: .full
                    case .finished(let entry): .finished(try log.answer(of: entry))
                    }
                #expect(state == expected, "step \(step)")
                if state == .begun { begun.append(request) }
            case 6...8:
                guard !begun.isEmpty else { continue }
                let request = begun.remove(at: below(UInt64(begun.count)))
                let answer = StoredAnswer(
                    status: 200 + below(9), fields: [], body: [UInt8](repeating: 1, count: below(600)))
                try rows.finish(request, with: answer, within: bounds)
                try Self.finish(log, request, answer, bounds)
            case 9:
                guard !begun.isEmpty else { continue }
                let request = begun.remove(at: below(UInt64(begun.count)))
                try rows.abandon(request)
                try log.transaction(reserving: 4_096) { log.abandon(request) }
            case 10:
                let time = Int64(1_000 + step - 500 - below(400))
                let rowsForgotten = try rows.forgetRequests(before: .at(time), limit: 1_000)
                #expect(try Self.forget(log, before: time) == rowsForgotten)
            default:
                if below(2) == 0 {
                    try log.carry(most: 2_000)
                } else {
                    logs[below(2)] = try open(segmentBytes: 8_000)
                }
            }
        }
        var (held, known): ([HeldRequest], [HeldRequest]) = ([], try rows.heldRequests())
        try logs[0].forEachRequest(together: 50) { held += $0 }
        func order(_ one: HeldRequest, _ other: HeldRequest) -> Bool {
            "\(one.request.scope) \(one.request.key)" < "\(other.request.scope) \(other.request.key)"
        }
        held.sort(by: order)
        known.sort(by: order)
        #expect(held == known && held.count > 20)
    }

    @Test("the thread writes together what waits, and all of it at the end")
    func groups() async throws {
        let requests = try LoggedRequests(open())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<500 {
                group.addTask {
                    #expect(try await requests.begin(Self.request(number), within: .init()) == .begun)
                    try await requests.finish(
                        Self.request(number), with: Self.answer(number, bytes: 40_000), within: .init())
                }
            }
            try await group.waitForAll()
        }
        requests.stop()
        let refusal = await #expect(throws: Refusal.self) {
            try await requests.begin(Self.request(999), within: .init())
        }
        #expect(refusal?.code == .unavailable)
        let log = try open()
        for number in 0..<500 {
            #expect(
                try Self.state(log, Self.request(number)) == "\(200 + number % 100), \(40_000 + number % 7)")
        }
    }
}

/// The same thread without tasks.
extension RequestLogTests {
    private final class Receiver: IdempotencyStateReceiver {
        private let continuation: UnsafeContinuation<Result<IdempotencyState, Refusal>, Never>

        init(_ continuation: UnsafeContinuation<Result<IdempotencyState, Refusal>, Never>) {
            self.continuation = continuation
        }

        func didBegin(_ result: Result<IdempotencyState, Refusal>) { continuation.resume(returning: result) }
    }

    private static func begin(
        _ requests: LoggedRequests, _ request: IdempotentRequest
    ) async -> Result<IdempotencyState, Refusal> {
        await withUnsafeContinuation {
            requests.begin(request, within: .init(), reportingTo: Receiver($0))
        }
    }

    @Test("a receiver learns what a task would")
    func receivers() async throws {
        let requests = try LoggedRequests(open())
        let (one, other) = (Self.request(1), Self.request(2))
        #expect(await Self.begin(requests, one) == .success(.begun))
        #expect(await Self.begin(requests, one) == .success(.unfinished))
        #expect(requests.finishIfReady(one, with: Self.answer(1), within: .init()))
        #expect(await Self.begin(requests, one) == .success(.finished(Self.answer(1))))
        #expect(await Self.begin(requests, other) == .success(.begun))
        requests.abandonAtOnce(other)
        #expect(await Self.begin(requests, other) == .success(.begun))
        requests.stop()
        guard case .failure(let refusal) = await Self.begin(requests, other) else {
            throw Refusal(.unavailable, detail: "it was stopped")
        }
        #expect(refusal.code == .unavailable)
    }

    @Test("an answer that would have to wait is left to the caller")
    func answersThatFindNoRoom() async throws {
        var bounds = LoggedRequests.Bounds()
        bounds.bytes = 1
        let requests = try LoggedRequests(open(), bounds: bounds)
        for number in 0..<3 { #expect(await Self.begin(requests, Self.request(number)) == .success(.begun)) }
        // While another process has the log, the thread has taken one of them at most.
        let taken = try open().transaction(reserving: 0) {
            (0..<3).map {
                requests.finishIfReady(Self.request($0), with: Self.answer($0), within: .init())
            }
        }
        #expect(taken.contains(true) && taken.contains(false))
        requests.stop()
        let log = try open()
        for number in 0..<3 {
            let finished = "\(200 + number), \(40 + number)"
            #expect(try Self.state(log, Self.request(number)) == (taken[number] ? finished : "unfinished"))
        }
    }
}

extension Bytes32 {
    fileprivate var copied: [UInt8] { indices.map { self[$0] } }
}
