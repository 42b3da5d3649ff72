import CountersignWire

/// Reads the usual form of a head in one pass over the received bytes: finds the ends of lines, looks up the
/// names of fields, and records where everything is.
///
/// It refuses nothing. Where a head is incomplete, ambiguous or merely unusual, the result is nil, and the
/// strict parser reads the same bytes from their beginning. Of a head that it does take, it says what the
/// strict parser says, offset for offset; Tests/HTTPTests/HeadScannerTests.swift and the fuzz target
/// `scanner` compare the two (docs/decisions/0065-head-scanner.md).
///
/// Memory safety: ``whole(at:)`` alone reads without a bounds check. Each caller has checked that the
/// position plus sixteen is not over the number of bytes. No position is negative, because positions begin at
/// 0 and only grow, by at most the number of bytes and a few. A block that reaches past the end has zeros
/// there. Zero is a control character, where every search ends, so that no search goes on past the end.
struct HeadScanner: ~Escapable {
    /// The fields of the largest head that the scanner takes: those that fit into a kilobyte of the stack.
    private static let mostFields = 48
    /// The bytes of `GET / HTTP/1.1` and `Host: h` with their line ends.
    private static let fewestBytes = 27

    private let bytes: Span<UInt8>

    /// Nil if there are too few bytes for a head.
    @_lifetime(copy bytes)
    init?(_ bytes: Span<UInt8>) {
        guard bytes.count >= HeadScanner.fewestBytes else { return nil }
        self.bytes = bytes
    }

    // MARK: Blocks

    /// The sixteen bytes from `position` on; zeros for those past the end.
    @inline(__always) private func block(at position: Int) -> ByteBlock {
        position &+ 16 <= bytes.count ? whole(at: position) : lastBlock(at: position)
    }

    /// The same, where the caller has compared the block's end with the number of bytes.
    @inline(__always) private func whole(at position: Int) -> ByteBlock {
        ByteBlock(of: bytes, uncheckedAt: position)
    }

    /// Shifts the bytes past the end in from above.
    @inline(never) private func lastBlock(at position: Int) -> ByteBlock {
        guard position < bytes.count, bytes.count >= 16 else { return ByteBlock(bytes: SIMD16()) }
        let words = unsafeBitCast(whole(at: bytes.count &- 16).bytes, to: SIMD2<UInt64>.self)
        let (low, high) = (words.x.littleEndian, words.y.littleEndian)
        let bits = (position &+ 16 &- bytes.count) &* 8
        let shifted =
            bits < 64
            ? SIMD2((low >> bits | high << (64 - bits)).littleEndian, (high >> bits).littleEndian)
            : SIMD2((high >> (bits - 64)).littleEndian, 0)
        return ByteBlock(bytes: unsafeBitCast(shifted, to: SIMD16<UInt8>.self))
    }

    @inline(__always) private func isLineEnd(at position: Int) -> Bool {
        position &+ 1 < bytes.count && bytes[position] == OctetClass.carriageReturn
            && bytes[position &+ 1] == OctetClass.lineFeed
    }

    /// Whether `text` is at `position`, byte for byte.
    @inline(__always) private func isAt(_ position: Int, text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        return position &+ count <= bytes.count
            && bytes.extracting(position..<position &+ count).matches(text)
    }

    // MARK: Parts of a head

    /// The field line at `position`, which is moved past it. Nil for an unusual one.
    @inline(__always) private func field(at position: inout Int) -> Request.Field? {
        let nameStart = position
        var nameEnd = position
        while true {
            let index = ByteBlock.firstIndex(.!block(at: nameEnd).areOfNames)
            nameEnd &+= index
            guard index == 16 else { break }
        }
        guard nameEnd > nameStart, nameEnd < bytes.count, bytes[nameEnd] == OctetClass.colon else {
            return nil
        }
        let identity = FieldIdentity(caseless: bytes.extracting(nameStart..<nameEnd))
        var valueStart = nameEnd &+ 1
        while valueStart < bytes.count, OctetClass.isBlank(bytes[valueStart]) { valueStart &+= 1 }
        let lineEnd = endOfValue(from: valueStart)
        guard isLineEnd(at: lineEnd) else { return nil }
        position = lineEnd &+ 2
        var valueEnd = lineEnd
        while valueEnd > valueStart, OctetClass.isBlank(bytes[valueEnd &- 1]) { valueEnd &-= 1 }
        return Request.Field(
            name: ByteRange(from: nameStart, to: nameEnd), value: ByteRange(from: valueStart, to: valueEnd),
            identity: identity)
    }

    /// The position of the first byte that a field value may not contain.
    @inline(__always) private func endOfValue(from start: Int) -> Int {
        var position = start
        while true {
            var controls = ByteBlock.Mask()
            while position &+ 16 <= bytes.count {
                controls = whole(at: position).areControls
                guard !ByteBlock.isAny(controls) else { break }
                position &+= 16
            }
            if position &+ 16 > bytes.count { controls = lastBlock(at: position).areControls }
            let index = ByteBlock.firstIndex(controls)
            position &+= index
            guard index < 16, position < bytes.count, bytes[position] == OctetClass.tab else {
                return position
            }
            position &+= 1
        }
    }

    /// A decimal number, as ``FieldLines/decimal(in:at:)`` reads it.
    private func decimal(_ value: ByteRange) -> Int? { FieldLines.decimal(in: bytes, at: value) }

    /// Whether the bytes at `range` equal `text` (lower-case), whatever the case of letters.
    private func equals(_ range: ByteRange, text: StaticString) -> Bool {
        FieldLines.equals(in: bytes, at: range, text: text)
    }

    /// What a `Connection` field says if it says one of two things, as almost all do.
    private enum ConnectionOption { case keepAlive, close }

    private func connectionOption(_ value: ByteRange) -> ConnectionOption? {
        if equals(value, text: "keep-alive") { return .keepAlive }
        return equals(value, text: "close") ? .close : nil
    }

    /// The fields that are named as the option is, and so end at this hop.
    private func named(_ option: ConnectionOption, in fields: Span<Request.Field>) -> FieldMask {
        let count = option == .close ? 5 : 10
        var named = FieldMask()
        for index in 0..<fields.count
        where fields[index].name.count == count && connectionOption(fields[index].name) == option {
            named.insert(index)
        }
        return named
    }
}

// MARK: Requests

extension HeadScanner {
    private struct RequestLine {
        var method: ByteRange
        var target: ByteRange
        /// The position of the first `?`; the target's end if there is none.
        var pathEnd: Int
        var end: Int
    }

    /// What of a request's fields concerns its destination, its framing and the connection.
    private struct RequestControl {
        var names = FieldNames()
        var host = ByteRange.empty
        var framing = Request.Framing.none
        var option: ConnectionOption?
    }

    /// Reads the head of a request of HTTP/1.1 in origin form.
    func request(limits: Limits, into request: inout Request) -> HeadParser.Parsed? {
        guard let line = requestLine(limits: limits) else { return nil }
        let most = min(HeadScanner.mostFields, limits.fieldCount)
        return withUnsafeTemporaryAllocation(of: Request.Field.self, capacity: HeadScanner.mostFields) {
            memory -> HeadParser.Parsed? in
            var fields = OutputSpan(buffer: memory, initializedCount: 0)
            var control = RequestControl()
            var position = line.end
            while !isLineEnd(at: position) {
                guard fields.count < most, let field = field(at: &position), note(field, in: &control) else {
                    return nil
                }
                fields.append(field)
            }
            let length = position + 2
            guard length <= limits.headBytes, control.names.contains(.host) else { return nil }
            request.resetValues()
            request.head.replaceAll(with: bytes.extracting(0..<length))
            request.setFields(fields.span, named: control.names)
            lowercase(fields.span, in: &request.head)
            request.method = line.method
            request.target = line.target
            request.path = ByteRange(from: Int(line.target.start), to: line.pathEnd)
            if line.pathEnd < Int(line.target.end) {
                request.query = ByteRange(from: line.pathEnd + 1, to: Int(line.target.end))
            }
            request.authority = control.host
            request.framing = control.framing
            if let option = control.option { request.hopByHopFields = named(option, in: fields.span) }
            return HeadParser.Parsed(
                length: length, keepsAlive: control.option != .close,
                expectsContinue: control.names.contains(.expect))
        }
    }

    /// `METHOD SP /path SP HTTP/1.1 CRLF`, with a method of three to fifteen letters.
    private func requestLine(limits: Limits) -> RequestLine? {
        let methodEnd = ByteBlock.firstIndex(block(at: 0).equals(OctetClass.space))
        let start = methodEnd &+ 1
        guard (3...15).contains(methodEnd), isUsualMethod(count: methodEnd), start < bytes.count,
            bytes[start] == UInt8(ascii: "/")
        else { return nil }
        var position = start
        var pathEnd: Int?
        while true {
            let block = block(at: position)
            let index = ByteBlock.firstIndex(.!block.areOfTargets)
            if pathEnd == nil {
                let mark = ByteBlock.firstIndex(block.equals(UInt8(ascii: "?")))
                if mark < index { pathEnd = position &+ mark }
            }
            position &+= index
            guard index == 16 else { break }
        }
        guard position &- start <= limits.targetBytes, isAt(position, text: " HTTP/1.1\r\n") else {
            return nil
        }
        return RequestLine(
            method: ByteRange(from: 0, to: methodEnd), target: ByteRange(from: start, to: position),
            pathEnd: pathEnd ?? position, end: position &+ 11)
    }

    /// Whether the first `count` bytes are upper-case letters. Not for methods that begin as `CONNECT`,
    /// `TRACE` and `PRI` do, except `PUT`.
    private func isUsualMethod(count: Int) -> Bool {
        switch count {
        case 3 where isAt(0, text: "GET"), 4 where isAt(0, text: "POST"), 3 where isAt(0, text: "PUT"):
            return true
        default: break
        }
        guard bytes[0] != UInt8(ascii: "C"), bytes[0] != UInt8(ascii: "T"),
            count != 3 || bytes[0] != UInt8(ascii: "P")
        else { return false }
        for index in 0..<count where !OctetClass.isUpperCase(bytes[index]) { return false }
        return true
    }

    /// Lower-cases names that have only letters, digits and hyphens, a word at a time. The last word of a
    /// name overlaps the one before it.
    private func lowercase(_ fields: Span<Request.Field>, in head: inout [UInt8]) {
        head.withUnsafeMutableBytes { head in
            for index in 0..<fields.count {
                let name = UnsafeMutableRawBufferPointer(rebasing: head[fields[index].name.range])
                func lowercase<Word: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as _: Word.Type) {
                    let word = name.loadUnaligned(fromByteOffset: offset, as: Word.self)
                    let letterCase = Word(truncatingIfNeeded: 0x2020_2020_2020_2020 as UInt64)
                    name.storeBytes(of: word | letterCase, toByteOffset: offset, as: Word.self)
                }
                var offset = 0
                while offset &+ 8 < name.count {
                    lowercase(at: offset, as: UInt64.self)
                    offset &+= 8
                }
                if name.count >= 8 {
                    lowercase(at: name.count &- 8, as: UInt64.self)
                } else if name.count >= 4 {
                    lowercase(at: 0, as: UInt32.self)
                    lowercase(at: name.count &- 4, as: UInt32.self)
                } else {
                    for offset in name.indices { lowercase(at: offset, as: UInt8.self) }
                }
            }
        }
    }

    /// Takes note of a field that the engine acts on; false if it is an unusual one, or there is another one
    /// of the name.
    @inline(__always) private func note(_ field: Request.Field, in control: inout RequestControl) -> Bool {
        switch field.known {
        case .host, .contentLength, .transferEncoding, .contentType, .connection, .expect:
            guard !control.names.contains(field.known), noteOnly(field, in: &control) else { return false }
        default: break
        }
        control.names.insert(field.known)
        return true
    }

    private func noteOnly(_ field: Request.Field, in control: inout RequestControl) -> Bool {
        switch field.known {
        case .host:
            guard !field.value.isEmpty, isHost(field.value) else { return false }
            control.host = field.value
        case .contentLength:
            // Beside a Transfer-Encoding, before or after it, it is for the strict parser to refuse.
            guard control.framing == .none, let length = decimal(field.value) else { return false }
            control.framing = length == 0 ? .none : .length(length)
        case .transferEncoding:
            guard !control.names.contains(.contentLength), equals(field.value, text: "chunked") else {
                return false
            }
            control.framing = .chunked
        case .connection:
            control.option = connectionOption(field.value)
            return control.option != nil
        case .expect: return equals(field.value, text: "100-continue")
        default: break
        }
        return true
    }

    private func isHost(_ value: ByteRange) -> Bool {
        var position = Int(value.start)
        while position < Int(value.end) {
            let index = ByteBlock.firstIndex(.!block(at: position).areOfHosts)
            position &+= index
            guard index == 16 else { break }
        }
        return position >= Int(value.end)
    }
}

// MARK: Responses

extension HeadScanner {
    /// Reads the head of a final response of HTTP/1.1.
    func response(answeringHEAD: Bool, into response: inout UpstreamResponse) -> Int? {
        guard let (status, end) = statusLine() else { return nil }
        return withUnsafeTemporaryAllocation(of: Request.Field.self, capacity: HeadScanner.mostFields) {
            memory -> Int? in
            var fields = OutputSpan(buffer: memory, initializedCount: 0)
            var names = FieldNames()
            var staying = FieldMask()
            var contentLength: Int?
            var option: ConnectionOption?
            var position = end
            while !isLineEnd(at: position) {
                guard fields.count < HeadScanner.mostFields, let field = field(at: &position) else {
                    return nil
                }
                switch field.known {
                case .contentLength, .transferEncoding, .connection:
                    guard !names.contains(field.known) else { return nil }
                default: break
                }
                switch field.known {
                case .contentLength:
                    contentLength = decimal(field.value)
                    guard contentLength != nil else { return nil }
                case .transferEncoding: guard equals(field.value, text: "chunked") else { return nil }
                case .connection:
                    option = connectionOption(field.value)
                    guard option != nil else { return nil }
                default: break
                }
                if field.traits.staysHere { staying.insert(fields.count) }
                names.insert(field.known)
                fields.append(field)
            }
            let length = position + 2
            guard length <= ResponseParser.headBytes else { return nil }
            response.head.replaceAll(with: bytes.extracting(0..<length))
            response.fields.replaceAll(with: fields.span)
            response.names = names
            response.status = status
            // A field `Keep-Alive` ends at this hop anyway.
            if option == .close { staying.formUnion(named(.close, in: fields.span)) }
            response.passedOn = FieldMask.all.subtracting(staying)
            do throws(Refusal) {
                try response.setFraming(
                    contentLength: contentLength, isChunked: names.contains(.transferEncoding),
                    minorVersion: 1, keepsAlive: option != .close, answeringHEAD: answeringHEAD)
            } catch {
                return nil
            }
            return length
        }
    }

    /// The status and the position after `HTTP/1.1 SP 3DIGIT [SP reason] CRLF`.
    private func statusLine() -> (status: Int, end: Int)? {
        let digits = (bytes[9] &- 0x30, bytes[10] &- 0x30, bytes[11] &- 0x30)
        guard isAt(0, text: "HTTP/1.1 "), (2...5).contains(digits.0), digits.1 < 10, digits.2 < 10 else {
            return nil
        }
        let status = Int(digits.0) * 100 + Int(digits.1) * 10 + Int(digits.2)
        let end = endOfValue(from: 12)
        guard isLineEnd(at: end), end == 12 || bytes[12] == OctetClass.space else { return nil }
        return (status, end &+ 2)
    }
}
