// Heads and chunked bodies: parsed in one piece or in two, the result is the same, and an accepted head
// parses again to the same value.
import CountersignWire

@testable import CountersignHTTP

private enum Verdict<Value: Equatable>: Equatable {
    case read(Value)
    case needsMore
    case refused
}

@Sendable func fuzzHead(_ bytes: Span<UInt8>) {
    let (whole, request) = head(bytes, splitAt: nil)
    // The first byte also selects the split position, so that one input tests one split.
    let (split, other) = head(bytes, splitAt: bytes.isEmpty ? 0 : Int(bytes[0]) * bytes.count / 256)
    precondition(whole == split)
    guard case .read(let length) = whole else { return }
    precondition(request.head == other.head && request.framing == other.framing)
    // Without the empty line before it, or a field that was dropped; with a Host field that HTTP/1.0 left
    // out.
    precondition(length <= bytes.count && request.head.count <= 2 * length + 64)
    precondition(request.target.count > 0 && !request.authority.isEmpty)
    let text = request.head
    for field in request.fields {
        precondition(
            !field.name.isEmpty && field.name.end < field.value.end
                && Int(field.value.end) <= request.head.count - 4)
        precondition(text[field.name.range].allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") })
        precondition(!text[field.name.range].contains(UInt8(ascii: "_")))
        precondition(text[field.value.range].allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D })
    }
    precondition(text[request.target.range].allSatisfy { $0 > 0x20 && $0 < 0x7F })
    precondition(text[request.method.range].allSatisfy { $0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z") })
    precondition(text[request.target.range].starts(with: "/".utf8) || request.text(request.target) == "*")
    precondition(request.text(request.requestTarget).hasSuffix(request.text(request.target)))
    // A parsed head gives the same result when it is parsed again.
    let (again, second) = head(request.head.span, splitAt: nil)
    precondition(again == .read(request.head.count) && second.head == request.head)
    precondition(second.fields.count == request.fields.count && second.framing == request.framing)
}

private func head(_ bytes: Span<UInt8>, splitAt cut: Int?) -> (Verdict<Int>, Request) {
    var rules = HeadRules()
    rules.defaultAuthority = "h"
    var parser = HeadParser(limits: Limits(), rules: rules)
    var request = Request()
    do {
        if let cut, let early = try parser.parse(bytes.extracting(0..<cut), into: &request) {
            return (.read(early.length), request)
        }
        guard let parsed = try parser.parse(bytes, into: &request) else { return (.needsMore, request) }
        return (.read(parsed.length), request)
    } catch {
        return (.refused, request)
    }
}

/// The scanner says what the strict parser says, of a request and of a response, or declines.
@Sendable func fuzzScanner(_ bytes: Span<UInt8>) {
    var (scanned, parsed) = (Request(), Request())
    if let whole = HeadScanner(bytes)?.request(limits: Limits(), into: &scanned) {
        var parser = HeadParser(limits: Limits())
        let strict = try? parser.parseStrictly(bytes, into: &parsed)
        precondition(whole.length == strict?.length && whole.keepsAlive == strict?.keepsAlive)
        precondition(whole.expectsContinue == strict?.expectsContinue)
        precondition(scanned.head == parsed.head && scanned.method == parsed.method)
        precondition(scanned.target == parsed.target && scanned.absoluteAuthority.isEmpty)
        precondition(scanned.path == parsed.path && scanned.query == parsed.query)
        precondition(scanned.authority == parsed.authority && scanned.framing == parsed.framing)
        precondition(scanned.names == parsed.names && scanned.hopByHopFields == parsed.hopByHopFields)
        precondition(scanned.hasFormType == parsed.hasFormType)
        precondition(scanned.hasMultipartType == parsed.hasMultipartType)
        precondition(scanned.minorVersion == parsed.minorVersion)
        precondition(areSame(scanned.fields, parsed.fields))
    }
    for answersHEAD in [false, true] {
        var scanned = UpstreamResponse()
        var parsed = UpstreamResponse()
        guard let length = HeadScanner(bytes)?.response(answeringHEAD: answersHEAD, into: &scanned) else {
            continue
        }
        var parser = ResponseParser()
        let strict = try? parser.parseStrictly(bytes, answeringHEAD: answersHEAD, into: &parsed)
        precondition(length == strict && scanned.head == parsed.head && scanned.status == parsed.status)
        precondition(scanned.framing == parsed.framing && scanned.keepsAlive == parsed.keepsAlive)
        precondition(scanned.declaredLength == parsed.declaredLength && scanned.hasBody == parsed.hasBody)
        precondition(scanned.names == parsed.names && scanned.passedOn == parsed.passedOn)
        precondition(areSame(scanned.fields, parsed.fields))
    }
}

private func areSame(_ left: [Request.Field], _ right: [Request.Field]) -> Bool {
    left.elementsEqual(right) {
        $0.name == $1.name && $0.value == $1.value && $0.known == $1.known && $0.traits == $1.traits
    }
}

@Sendable func fuzzAnswer(_ bytes: Span<UInt8>) {
    for answersHEAD in [false, true] {
        var parser = ResponseParser()
        var response = UpstreamResponse()
        guard let length = try? parser.parse(bytes, answeringHEAD: answersHEAD, into: &response) else {
            continue
        }
        precondition(length <= bytes.count && response.head.count == length)
        precondition((100...999).contains(response.status))
        let output = Buffer()
        response.writeFields(to: output)
    }
}

@Sendable func fuzzChunks(_ bytes: Span<UInt8>) {
    let whole = chunks(bytes, pieces: bytes.count)
    let bitwise = chunks(bytes, pieces: 1)
    precondition(whole == bitwise)
    guard case .read(let body) = whole else { return }
    precondition(body.count < bytes.count)
}

private func chunks(_ bytes: Span<UInt8>, pieces: Int) -> Verdict<[UInt8]> {
    var decoder = ChunkedDecoder()
    var body: [UInt8] = []
    var start = 0
    while start < bytes.count {
        let piece = bytes.extracting(start..<min(start + pieces, bytes.count))
        var position = 0
        reading: while true {
            do throws(Refusal) {
                switch try decoder.next(piece, from: position) {
                case .needsMore: break reading
                case .end: return .read(body)
                case .data(let range):
                    precondition(range.lowerBound >= position && range.upperBound <= piece.count)
                    for index in range { body.append(piece[index]) }
                    position = range.upperBound
                }
            } catch {
                return .refused
            }
        }
        start += piece.count
    }
    return .needsMore
}

/// The PROXY header: parsed at once or byte by byte, the result is the same, and no byte after it is
/// consumed.
@Sendable func fuzzProxyHeader(_ bytes: Span<UInt8>) {
    let whole = proxyHeader(bytes, pieces: max(1, bytes.count))
    precondition(whole.verdict == proxyHeader(bytes, pieces: 1).verdict)
    guard case .read(let count) = whole.verdict else { return }
    precondition(count <= bytes.count && count >= 15)
    let again = proxyHeader(bytes.extracting(0..<count), pieces: count)
    precondition(again.verdict == whole.verdict && again.header == whole.header)
}

private func proxyHeader(_ bytes: Span<UInt8>, pieces: Int) -> (verdict: Verdict<Int>, header: ProxyHeader?) {
    var reader = ProxyHeaderReader()
    var position = 0
    while position < bytes.count {
        do {
            let end = min(position + pieces, bytes.count)
            let taken = try reader.take(bytes.extracting(position..<end))
            precondition(
                taken.count <= end - position && (taken.header != nil || taken.count == end - position))
            position += taken.count
            if let header = taken.header { return (.read(position), header) }
        } catch {
            return (.refused, nil)
        }
    }
    return (.needsMore, nil)
}
