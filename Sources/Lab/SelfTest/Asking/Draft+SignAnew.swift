import CountersignSchemes
import CountersignWire

/// Signatures that are right and cover too little: what no client of ours makes.
extension Draft {
    /// Over what its `Signature-Input` says now, whatever that leaves out: message-signatures.
    mutating func signAnew(_ subject: Subject) throws(Fault) {
        set("Signature", "app=::")
        do throws(Refusal) {
            let request = request()
            let scheme = MessageSignatures()
            var workspace = Workspace()
            guard let claim = try scheme.claim(in: request, &workspace) else { throw Refusal(.unsigned) }
            try scheme.spell(claim, request, &workspace)
            let signature = try subject.credentials.key.sign(workspace.text)
            set("Signature", "app=:\(Base64.encode(signature.span, .standard)):")
        } catch {
            throw Fault(.failed, "cannot be staged: \(error.detail)")
        }
    }

    /// A form of form-md5, without one of its parameters. Source: docs/protocol.md, "form-md5".
    mutating func signAnew(_ credentials: Credentials, without name: String) throws(Fault) {
        let form = String(decoding: body, as: UTF8.self).split(separator: "&")
        let kept = form.filter { !$0.hasPrefix("\(name)=") && !$0.hasPrefix("sign=") }
        guard kept.count == form.count - 2 else { throw Fault(.failed, "cannot be staged: no \(name) in the form") }
        if credentials.formMD5Key == .appended {
            let text = Array(kept.sorted().joined(separator: "&").utf8)
            return sign(kept, as: credentials, over: StringToSign(text, secretAt: text.count))
        }
        // None of ours has a character that would have to be decoded first, or sorts behind `private_key` by more than its name.
        let before = kept.filter { $0 < "private_key" }.sorted() + ["private_key="]
        let after = kept.filter { $0 > "private_key" }.sorted()
        let text = before.joined(separator: "&")
        let whole = text + after.map { "&\($0)" }.joined()
        sign(kept, as: credentials, over: StringToSign(Array(whole.utf8), secretAt: text.utf8.count))
    }

    private mutating func sign(
        _ form: [Substring], as credentials: Credentials, over text: borrowing StringToSign
    ) {
        let mac = credentials.key.mac(.md5OverSecret, of: text)
        body = Array((form.joined(separator: "&") + "&sign=\(Hex.encode(mac.span))").utf8)
    }
}
