import CountersignWire
import Glibc

/// The progress of the response to the current request.
enum ResponseProgress {
    case none
    case sized(remaining: Int)
    case chunked
    /// A head without a body: the response to HEAD, 204 and 304.
    case bodyless
    case finished
    /// Cut short: only closing the connection can tell the client.
    case aborted
}

/// How the body of a response is delimited.
enum ResponseFraming {
    case bodyless
    /// No body follows, but the head states its length. Source: RFC 9110 §8.6.
    case bodylessOfLength(Int)
    case length(Int)
    case chunked
}

extension Connection {
    func respond(_ answer: ServerResponse) async {
        guard case .none = self.answer else { return }
        skipArrivedBody()
        let framing = framing(of: answer.status, length: answer.body.count)
        let hasBegun = begin(status: answer.status, framing: framing) {
            for field in answer.fields { $0.appendField(field.name, value: field.value) }
        }
        guard hasBegun else {
            // The response of a backend, stored for a keyed request: the heads of the gateway's own are far
            // smaller than the output's 64 KiB.
            didFailToDeliver(because: .upstreamInvalid)
            return self.answer = .aborted
        }
        do {
            if case .sized = self.answer { try await write(answer.body) }
            try await finishAnswer()
        } catch {
            self.answer = .aborted
        }
    }

    /// The framing of a response that the gateway itself makes.
    private func framing(of status: Int, length: Int) -> ResponseFraming {
        switch status {
        // Source: RFC 9110 §8.6.
        case 204, 304: .bodyless
        default: isHEAD ? .bodylessOfLength(length) : .length(length)
        }
    }

    /// The room in the output for the parts of a head that are not the response's own, with much to spare.
    private static let headRoom = 1_024

    func respondAtOnce(_ response: ResponseBytes) -> Bool {
        guard case .none = answer else { return true }
        let length = response.body.count
        guard takeOutput().space >= response.fields.count + length + Connection.headRoom else { return false }
        skipArrivedBody()
        let framing = framing(of: response.status, length: length)
        guard begin(status: response.status, framing: framing, fields: { $0.append(response.fields) })
        else { return false }
        if case .sized = answer {
            takeOutput().append(response.body)
            answeredBytes += length
            answer = .sized(remaining: 0)
        }
        // The end of the exchange sends the rest.
        if !finishIfReady() { answer = .finished }
        return true
    }

    /// Appends the head to the output, which is sent together with the body. `fields` appends all fields
    /// except those for framing and connection. The gateway adds a `Date` unless `hasDate` says that the
    /// fields contain one. Source: RFC 9110 §6.6.1.
    ///
    /// False if the head does not fit into the output: then no response has begun, and no byte of this one
    /// is sent. After a cut head, the client would read the body as header lines.
    func begin(
        status: Int, framing: ResponseFraming, hasDate: Bool = false, fields: (Buffer) -> Void
    ) -> Bool {
        let output = takeOutput()
        answeredStatus = status
        output.appendStatusLine(status)
        if !hasDate { output.append(loop.dateLine) }
        fields(output)
        switch framing {
        case .bodyless: answer = .bodyless
        case .bodylessOfLength(let length):
            output.appendLength(length)
            answer = .bodyless
        case .length(let length):
            output.appendLength(length)
            answer = .sized(remaining: length)
        case .chunked where request.minorVersion == 1:
            output.append("Transfer-Encoding: chunked\r\n")
            answer = .chunked
        case .chunked:
            // HTTP/1.0 has no chunked coding: the end of the connection ends the body.
            answer = .sized(remaining: .max)
            abandonKeepAlive()
        }
        // Only this statement decides whether the connection closes, so that the announcement is always
        // true.
        closesAfterAnswer = !keepsAlive
        if closesAfterAnswer { output.append("Connection: close\r\n") }
        output.append("\r\n")
        guard output.isTruncated else { return true }
        output.clear()
        answer = .none
        answeredStatus = nil
        closesAfterAnswer = false
        return false
    }

    func write(_ bytes: [UInt8]) async throws(Stream.StreamError) {
        let piece = loop.buffers.take()
        defer { loop.buffers.put(piece) }
        var offset = 0
        while offset < bytes.count {
            piece.clear()
            offset += bytes.withUnsafeBytes { piece.append(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            try await write(piece, upTo: piece.count)
        }
    }

    /// Sends the first `count` bytes of `piece` as part of the body, and removes them from `piece`.
    func write(_ piece: Buffer, upTo count: Int) async throws(Stream.StreamError) {
        guard count > 0 else { return }
        answeredBytes += count
        switch answer {
        case .sized(let remaining):
            guard count <= remaining else { throw .closed }
            answer = .sized(remaining: remaining == .max ? .max : remaining - count)
            try await append(piece, count: count)
        case .chunked:
            let output = takeOutput()
            if output.space < 32 { try await flush() }
            output.appendHex(count)
            output.append("\r\n")
            try await append(piece, count: count)
            if output.space < 2 { try await flush() }
            output.append("\r\n")
        default: throw .closed
        }
    }

    /// Appends the first `count` bytes of `piece` as part of a body of known length, and removes them from
    /// `piece`; false, and nothing is done, if the output has no room for them.
    func appendIfRoom(_ piece: Buffer, upTo count: Int) -> Bool {
        guard case .sized(let remaining) = answer, count <= remaining else { return false }
        let output = takeOutput()
        guard output.space >= count else { return false }
        output.append(UnsafeRawBufferPointer(rebasing: piece.filled.prefix(count)))
        piece.take(count)
        answeredBytes += count
        answer = .sized(remaining: remaining == .max ? .max : remaining - count)
        return true
    }

    /// Ends a body of known length, or a response without one, if the socket takes the output at once. If
    /// not, ``finishAnswer()`` sends the rest, or reports the error.
    func finishIfReady() -> Bool {
        switch answer {
        case .sized(remaining: 0), .bodyless: break
        default: return false
        }
        guard let output = output.take() else { return false }
        stream.writeDeadline = loop.seconds + Int64(deadlines.stall)
        guard stream.writeIfReady(output) else {
            self.output = output
            return false
        }
        loop.outputs.put(output)
        answer = .finished
        return true
    }

    /// Ends the body and sends the rest of the output.
    func finishAnswer() async throws(Stream.StreamError) {
        switch answer {
        case .sized(let remaining):
            guard remaining == 0 || remaining == .max else { throw .closed }
        case .chunked:
            let output = takeOutput()
            if output.space < 8 { try await flush() }
            output.append("0\r\n\r\n")
        case .bodyless: break
        default: throw .closed
        }
        try await flush()
        answer = .finished
    }

    /// Sends the output.
    func flush() async throws(Stream.StreamError) {
        guard let output, !output.isEmpty else { return }
        stream.writeDeadline = loop.seconds + Int64(deadlines.stall)
        if !stream.writeIfReady(output) {
            do throws(Stream.StreamError) {
                try await stream.write(output)
            } catch {
                didFailToDeliver(because: error == .timedOut ? .clientSlow : .clientAborted)
                throw error
            }
        }
        loop.outputs.put(output)
        self.output = nil
    }

    func sendContinue() async throws(Stream.StreamError) {
        takeOutput().append("HTTP/1.1 100 Continue\r\n\r\n")
        try await flush()
    }

    private func append(_ piece: Buffer, count: Int) async throws(Stream.StreamError) {
        var left = count
        while left > 0 {
            let moved = takeOutput().append(UnsafeRawBufferPointer(rebasing: piece.filled.prefix(left)))
            piece.take(moved)
            left -= moved
            if left > 0 { try await flush() }
        }
    }

    private func takeOutput() -> Buffer {
        if let output { return output }
        let buffer = loop.outputs.take()
        output = buffer
        return buffer
    }
}

extension Buffer {
    fileprivate func appendStatusLine(_ status: Int) {
        if status == 200 { return append("HTTP/1.1 200 OK\r\n") }
        append("HTTP/1.1 ")
        appendDecimal(status)
        append(" ")
        append(ReasonPhrase.of(status) ?? "Status")
        append("\r\n")
    }
}

extension UpstreamResponse {
    var hasDate: Bool { names.contains(.date) }
}

/// Checks that the peer reads a response at the minimum rate, averaged over a window.
///
/// Counts only while bytes wait to be sent. The bytes read are those written minus those that the socket
/// still holds, so a large socket buffer does not look like a fast client. A stream with nothing to write
/// loses no credit.
struct ResponseRateMonitor {
    /// Bytes a second.
    private let rate: Int
    /// The largest credit: the bytes of one window.
    private let most: Int
    /// Bytes by which the peer may still fall behind the rate.
    private var credit: Int
    private var written = 0
    /// The bytes read, and the time, at the last check of the current wait.
    private var taken = 0
    private var looked: Int64 = 0

    /// `window` in seconds.
    init(rate: Int, window: Int) {
        self.rate = rate
        most = rate * window
        credit = most
    }

    mutating func didWrite(_ count: Int) { written &+= count }

    /// Called when the socket's buffer is full.
    mutating func beginsWait(unsent: Int, now: Int64) {
        // Several waits within one second count as one, including the bytes read between them.
        guard looked != now else { return }
        if looked < now - 1 {
            (taken, looked) = (written &- unsent, now)
        }
    }

    /// Called once a second during a wait.
    mutating func isTooSlow(unsent: Int, now: Int64) -> Bool {
        guard looked < now else { return false }
        let nowTaken = written &- unsent
        credit = min(most, credit &+ (nowTaken &- taken) &- rate &* Int(clamping: now - looked))
        (taken, looked) = (nowTaken, now)
        return credit < 0
    }
}

/// The `Date` field of responses. Source: RFC 9110 §5.6.7, §6.6.1.
enum DateField {
    /// Whole Unix seconds.
    static func now() -> Int64 { Int64(time(nil)) }

    /// `Date: Sun, 06 Nov 1994 08:49:37 GMT` and CRLF, for a time in Unix seconds.
    static func bytes(at seconds: Int64) -> [UInt8] {
        var moment = time_t(seconds)
        var parts = tm()
        gmtime_r(&moment, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let (day, month) = (Int(parts.tm_wday), Int(parts.tm_mon))
        guard days.indices.contains(day), months.indices.contains(month) else { return [] }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(days[day]), \(two(parts.tm_mday)) \(months[month]) \(Int(parts.tm_year) + 1900)"
        return Array(
            "Date: \(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT\r\n".utf8)
    }
}
