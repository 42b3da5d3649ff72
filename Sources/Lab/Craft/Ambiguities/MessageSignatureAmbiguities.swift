import CountersignSeal
import CountersignWire

/// Where two readers of RFC 9421 may disagree: which signature counts, which digest, which of two members.
enum MessageSignatureAmbiguities {
    static let all = [
        Ambiguity("member-twice", "writes the payee's member twice, with a digest that fits", apply: membersTwice),
        Ambiguity("two-digests", "adds a digest of its own body beside the one that is signed", apply: twoDigests),
        Ambiguity(
            "second-signature", "puts a signature that covers less in front of the genuine one", apply: twoSignatures),
        Ambiguity("body-uncovered", "takes the digest from the list of what is covered", apply: uncovered),
    ]

    /// `name`'s value among a signature's parameters, without quotes; of the first signature.
    static func parameter(_ name: String, of input: String) -> String? {
        input.split(separator: ";").first { $0.hasPrefix("\(name)=") }.map { part in
            let value = part.dropFirst(name.count + 1).prefix { $0 != "," }
            return value.hasPrefix("\"") ? String(value.dropFirst().prefix { $0 != "\"" }) : String(value)
        }
    }

    static func restamped(_ request: RawRequest, at now: Int64) -> RawRequest? {
        guard let input = request.fields["Signature-Input"], let created = parameter("created", of: input),
            let range = input.firstRange(of: "created=\(created)")
        else { return nil }
        var copy = request
        copy.fields["Signature-Input"] = input.replacingCharacters(of: range, with: "created=\(now)")
        return copy
    }

    private static func membersTwice(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        AuthAmbiguities.spelledMembers(request, order, ["to"]).flatMap { [$0, $0.digested()] }
    }

    private static func twoDigests(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard let genuine = request.fields["Content-Digest"] else { return [] }
        let changed = request.paying(order.payee)
        var (list, lines) = (changed, changed)
        list.fields["Content-Digest"] = "\(genuine), \(changed.digest)"
        lines.fields.lines.append(.init("Content-Digest", changed.digest))
        return [list, lines]
    }

    private static func twoSignatures(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard let input = request.fields["Signature-Input"], let signature = request.fields["Signature"],
            let equals = input.firstIndex(of: "="), let end = input.firstIndex(of: ")"),
            let value = signature.firstIndex(of: "=")
        else { return [] }
        let less = "x=(\"@method\")\(input[input.index(after: end)...])"
        var (first, last) = (request.paying(order.payee).digested(), request.paying(order.payee).digested())
        first.fields["Signature-Input"] = "\(less), \(input)"
        first.fields["Signature"] = "x=\(signature[signature.index(after: value)...]), \(signature)"
        last.fields["Signature-Input"] = "\(input), \(less)"
        last.fields["Signature"] = "\(signature), x\(signature[value...])"
        return equals < end ? [first, last] : []
    }

    private static func uncovered(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        guard let input = request.fields["Signature-Input"] else { return [] }
        var copy = request.paying(order.payee)
        let range = input.firstRange(of: " \"content-digest\"")
        copy.fields["Signature-Input"] = range.map { input.replacingCharacters(of: $0, with: "") } ?? input
        copy.fields["Content-Digest"] = nil
        return [copy]
    }
}

extension RawRequest {
    /// `sha-256=:…:` of the body. Source: RFC 9530.
    var digest: String { "sha-256=:\(Base64.encode(SHA256.digest(body.span).span, .standard)):" }

    /// With a digest that is right, whatever stood there.
    func digested() -> RawRequest {
        var copy = self
        if copy.fields["Content-Digest"] != nil { copy.fields["Content-Digest"] = digest }
        return copy
    }
}

extension String {
    fileprivate func replacingCharacters(of range: Range<String.Index>, with text: String) -> String {
        "\(self[..<range.lowerBound])\(text)\(self[range.upperBound...])"
    }
}
