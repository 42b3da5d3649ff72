// Whole requests, parsed by every scheme as the gate does before it has a key: the claim and the signature
// base are the same when buffers of another request are reused.
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
    do {
        let claim = try SchemeRegistry.standard.claim(in: request, workspace: &workspace)
        guard let scheme = SchemeRegistry.standard.scheme(named: claim.scheme) else {
            preconditionFailure("no such scheme")
        }
        try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        return workspace.text.bytes.array
    } catch {
        return nil
    }
}
