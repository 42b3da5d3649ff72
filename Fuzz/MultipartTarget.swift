// Multipart bodies: accepted parts lie inside the body, and parse to the same when they are written again.
import CountersignWire

/// The first line is the Content-Type, the rest the body.
@Sendable func fuzzMultipart(_ bytes: Span<UInt8>) {
    guard let end = bytes.firstIndex(of: 0x0A, from: 0) else { return }
    guard let boundary = Multipart.Boundary(contentType: bytes.extracting(0..<end)) else { return }
    let body = bytes.extracting((end + 1)...)
    guard let parts = try? Multipart.read(body, between: boundary) else { return }
    precondition(!parts.isEmpty && parts.count <= Multipart.mostParts)
    var written: [UInt8] = []
    for part in parts {
        precondition(!part.name.isEmpty && part.name.range.upperBound < part.content.range.lowerBound)
        precondition(part.content.range.upperBound <= body.count)
        let content = body.extracting(part.content.range)
        precondition(content.firstIndex(of: boundary.delimiter.span) == nil)
        written += boundary.delimiter
        written += Array("\r\nContent-Disposition: form-data; name=\"".utf8)
        body.extracting(part.name.range).withUnsafeBufferPointer { written.append(contentsOf: $0) }
        written += Array((part.kind == .file ? "\"; filename=\"f\"\r\n\r\n" : "\"\r\n\r\n").utf8)
        content.withUnsafeBufferPointer { written.append(contentsOf: $0) }
        written += [0x0D, 0x0A]
    }
    written += boundary.delimiter
    written += Array("--".utf8)
    guard let again = try? Multipart.read(written.span, between: boundary) else {
        preconditionFailure("what was written anew is not read")
    }
    precondition(again.count == parts.count)
    for (first, second) in zip(parts, again) {
        precondition(first.kind == second.kind)
        precondition(body.extracting(first.name.range).matches(written.span.extracting(second.name.range)))
        precondition(
            body.extracting(first.content.range).matches(written.span.extracting(second.content.range)))
    }
}
