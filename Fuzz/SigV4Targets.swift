// sigv4's readers, nearer than a whole head lets a fuzzer come: the input's lines are the Authorization field, the target
// and one field more. What is accepted is spelled, in each spelling there is.
import CountersignSchemes
import CountersignWire

@Sendable func fuzzSigV4(_ bytes: Span<UInt8>) {
    let lines = (0..<bytes.count).map { bytes[$0] }.split(separator: 0x0A, omittingEmptySubsequences: false)
    guard lines.count == 3 else { return }
    var draft = Draft(method: "GET", target: Array(lines[1]), authority: "h.example")
    draft.set("X-Amz-Date", "20270115T080000Z")
    if !lines[0].isEmpty { draft.set("Authorization", String(decoding: lines[0], as: UTF8.self)) }
    if draft.target.starts(with: "/?X-Amz-".utf8) { draft.fields.removeFirst() }
    draft.set("X-Words", String(decoding: lines[2], as: UTF8.self))
    let texts = spellings(of: draft)
    guard let standard = texts.first, texts.count <= 3 else { return precondition(texts.isEmpty) }
    let query = draft.target.firstIndex(of: UInt8(ascii: "?")).map { draft.target[$0...] } ?? []
    // A presigned URL's spelling lacks its signature, and so is none.
    guard query.count > 1, lines[0].starts(with: "AWS4-".utf8) else { return }
    // A spelling of a query is itself a query, and one of the same parameters: docs/protocol.md rests on that.
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
    do throws(Refusal) {
        guard let claim = try SigV4().claim(in: request, &workspace) else { return [] }
        try SigV4().spell(claim, request, &workspace)
        repeat {
            let lines = workspace.canonicalRequest.split(separator: "\n", omittingEmptySubsequences: false)
            precondition(lines.count > 5)
            found.append((lines[1], lines[2]))
        } while try SigV4().respell(found.count - 1, claim, request, &workspace) == .written
    } catch {
        precondition(found.isEmpty)
    }
    return found
}
