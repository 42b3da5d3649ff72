// The parsers of the auth schemes. The JSON walk without copies must agree with the parser that builds a
// tree.
import CountersignSchemes
import CountersignWire

@Sendable func fuzzMembers(_ bytes: Span<UInt8>) {
    var walked: [(name: [UInt8], kind: JSONMembers.Kind, value: [UInt8])]? = []
    var members = JSONMembers()
    do {
        while let member = try members.next(in: bytes) {
            precondition(member.name.range.upperBound < member.value.range.lowerBound)
            precondition(member.value.range.upperBound <= bytes.count)
            var name: [UInt8] = []
            try JSONMembers.forEachByte(of: member.name, in: bytes) { name.append($0) }
            var value: [UInt8] = []
            if member.kind == .string {
                try JSONMembers.forEachByte(of: member.value, in: bytes) { value.append($0) }
            } else {
                for index in member.value.range { value.append(bytes[index]) }
            }
            walked?.append((name, member.kind, value))
        }
    } catch {
        precondition((0...bytes.count).contains(error.offset))
        walked = nil
    }
    let text = bytes.withUnsafeBufferPointer { Array($0) }
    // The tree parser refuses repeated names at every level, and so may refuse more, but never less.
    guard let document = try? JSONReader.read(text), let expected = document.root.members else { return }
    guard let walked else { preconditionFailure("refused what the other reader takes") }
    precondition(walked.count == expected.count)
    for (member, other) in zip(walked, expected) {
        precondition(member.name == Array(other.name.utf8))
        switch (member.kind, other.value.content) {
        case (.null, .null), (.yes, .bool(true)), (.no, .bool(false)): break
        case (.string, .string(let text)): precondition(member.value == Array(text.utf8))
        case (.number, .number): precondition(member.value == Array(document.bytes(of: other.value)))
        case (.emptyContainer, .array(let elements)): precondition(elements.isEmpty)
        case (.emptyContainer, .object(let members)): precondition(members.isEmpty)
        case (.container, .array), (.container, .object):
            precondition(member.value == Array(document.bytes(of: other.value)))
        default: preconditionFailure("another kind of value")
        }
    }
}

/// The same bytes as a query, as a form body and as a JSON body. auth-v1 and auth-v2 never both recognise
/// them, and the signature base is the same when buffers are reused.
@Sendable func fuzzAuth(_ bytes: Span<UInt8>) {
    let text = bytes.withUnsafeBufferPointer { Array($0) }
    let query = Draft(method: "GET", target: Array("/a%2B?".utf8) + text, authority: "h")
    var form = Draft(method: "POST", target: Array("/a".utf8), authority: "h")
    form.setField("Content-Type", to: "application/x-www-form-urlencoded")
    form.body = text
    var members = Draft(method: "POST", target: Array("/a".utf8), authority: "h")
    for (name, value) in [("Version", "4"), ("Client-ID", "k"), ("Timestamp", "1"), ("Signature", mac)] {
        members.setField("X-Auth-\(name)", to: value)
    }
    members.body = text
    var workspace = Workspace()
    for draft in [query, form, members] {
        let request = draft.request()
        for scheme in [AuthV1(), AuthV2(), AuthV4()] as [any Scheme] {
            let first = spelled(request, scheme, &workspace)
            precondition(first == spelled(request, scheme, &workspace))
            precondition(first == nil || scheme.detect(in: request) == .present)
        }
        precondition(AuthV1().detect(in: request) == .absent || AuthV2().detect(in: request) == .absent)
    }
}

private let mac = String(repeating: "0a", count: 32)

private func spelled(_ request: Request, _ scheme: any Scheme, _ workspace: inout Workspace) -> [UInt8]? {
    do {
        guard let claim = try scheme.claim(in: request, workspace: &workspace) else { return nil }
        try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        return workspace.text.bytes.array
    } catch {
        return nil
    }
}
