// Whole requests, read by every scheme as the gate does before it has a key: any claim and its string to sign come out
// the same from buffers that another request has used.
import CountersignHTTP
import CountersignSchemes
import CountersignWire

@Sendable func fuzzClaims(_ bytes: Span<UInt8>) {
    var parser = HeadParser(limits: Limits())
    var request = Request()
    guard let parsed = try? parser.parse(bytes, into: &request) else { return }
    for index in parsed.length..<bytes.count { request.body.append(bytes[index]) }
    var workspace = Workspace()
    let first = spelled(request, &workspace)
    let again = spelled(request, &workspace)
    precondition(first == again)
    precondition(first.map { !$0.isEmpty } ?? true)
}

private func spelled(_ request: Request, _ workspace: inout Workspace) -> [UInt8]? {
    do throws(Refusal) {
        let claim = try Registry.standard.claim(in: request, &workspace)
        guard let scheme = Registry.standard.scheme(named: claim.scheme) else { preconditionFailure("no such scheme") }
        try scheme.spell(claim, request, &workspace)
        return workspace.text.bytes.array
    } catch {
        return nil
    }
}
