// Paths, and the parameter names by which legacy schemes are recognised: a path that is reported as
// unambiguous is so, and the scan for names agrees with a form parser.
import CountersignSchemes
import CountersignWire

@Sendable func fuzzPath(_ bytes: Span<UInt8>) {
    let readings = PathReadings(bytes)
    guard bytes.count > 0, bytes[0] == UInt8(ascii: "/"), readings.ambiguity == nil else { return }
    var segments: [[UInt8]] = [[]]
    var index = 1
    while index < bytes.count {
        if bytes[index] == UInt8(ascii: "/") {
            segments.append([])
            index += 1
            continue
        }
        let escaped = bytes[index] == UInt8(ascii: "%") ? PercentEncoding.byte(in: bytes, at: index + 1) : nil
        segments[segments.count - 1].append(escaped ?? bytes[index])
        index += escaped == nil ? 1 : 3
    }
    if segments.last?.isEmpty == true { segments.removeLast() }
    var prefix: [UInt8] = []
    for segment in segments {
        precondition(!segment.isEmpty && segment.last != UInt8(ascii: ".") && segment.last != 0x20)
        precondition(!segment.contains { $0 < 0x20 || $0 == 0x7F })
        precondition(!segment.contains { "/\\;?#%".utf8.contains($0) })
        prefix += [UInt8(ascii: "/")] + segment
    }
    precondition(prefix.isEmpty || PathMatch(bytes, with: prefix) != .none)
    for other in readings.others { precondition(PathReadings(other.span).ambiguity == nil) }
}

@Sendable func fuzzSignatureNames(_ bytes: Span<UInt8>) {
    let text = bytes.withUnsafeBufferPointer { Array($0) }
    var form = Draft(method: "POST", target: Array("/".utf8), authority: "h")
    form.setField("Content-Type", to: "application/x-www-form-urlencoded")
    form.body = text
    let request = form.request()
    let traces = [FormMD5().detect(in: request), AuthV1().detect(in: request), AuthV2().detect(in: request)]
    var (hasAppID, hasTelling, hasSignature, pairs) = (false, false, false, 0)
    var reader = Form.Reader()
    while let pair = try? reader.next(in: text.span) {
        pairs += 1
        if Form.isNamed("app_id", pair: pair, of: text.span) { hasAppID = true }
        for name in ["sign", "rand", "timestamp"] as [StaticString]
        where Form.isNamed(name, pair: pair, of: text.span) {
            hasTelling = true
        }
        if Form.isNamed("auth_signature", pair: pair, of: text.span) { hasSignature = true }
    }
    guard pairs < 1_000 else { return }
    precondition((traces[0] == .present) == (hasAppID && hasTelling))
    precondition(!hasSignature || traces[1] == .present || traces[2] == .present)
    precondition(traces[1] == .absent || traces[2] == .absent)
}
