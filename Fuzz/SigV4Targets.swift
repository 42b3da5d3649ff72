// The parsers of sigv4, without a whole head around them: the input's lines are the Authorization field, the
// target and one more field. An accepted request has a signature base in each of its forms.
import CountersignSchemes
import CountersignWire

@Sendable func fuzzSigV4(_ bytes: Span<UInt8>) {
    let lines = (0..<bytes.count).map { bytes[$0] }.split(separator: 0x0A, omittingEmptySubsequences: false)
    guard lines.count == 3 else { return }
    var draft = Draft(method: "GET", target: Array(lines[1]), authority: "h.example")
    draft.setField("X-Amz-Date", to: "20270115T080000Z")
    if !lines[0].isEmpty { draft.setField("Authorization", to: String(decoding: lines[0], as: UTF8.self)) }
    if draft.target.starts(with: "/?X-Amz-".utf8) { draft.fields.removeFirst() }
    draft.setField("X-Words", to: String(decoding: lines[2], as: UTF8.self))
    let texts = spellings(of: draft)
    guard let standard = texts.first, texts.count <= 3 else { return precondition(texts.isEmpty) }
    let query = draft.target.firstIndex(of: UInt8(ascii: "?")).map { draft.target[$0...] } ?? []
    // The canonical query of a presigned URL lacks the signature, and so is no presigned URL itself.
    guard query.count > 1, lines[0].starts(with: "AWS4-".utf8) else { return }
    // The canonical form of a query is a query with the same parameters, as docs/protocol.md states.
    for text in texts {
        draft.target = Array("/?\(text.query)".utf8)
        guard let again = spellings(of: draft).first else { preconditionFailure("a spelling is not read") }
        precondition(again.query == standard.query)
    }
}

private func spellings(of draft: Draft) -> [(path: Substring, query: Substring)] {
    let request = draft.request()
    var workspace = Workspace()
    var found: [(path: Substring, query: Substring)] = []
    do {
        guard let claim = try SigV4().claim(in: request, workspace: &workspace) else { return [] }
        try SigV4().writeStringToSign(for: claim, of: request, into: &workspace)
        repeat {
            let lines = workspace.canonicalRequest.split(separator: "\n", omittingEmptySubsequences: false)
            precondition(lines.count > 5)
            found.append((lines[1], lines[2]))
        } while try SigV4().writeAlternative(
            found.count - 1, for: claim, of: request, into: &workspace) == .written
    } catch {
        precondition(found.isEmpty)
    }
    return found
}
