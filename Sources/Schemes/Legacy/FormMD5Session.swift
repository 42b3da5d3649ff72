import CountersignSeal
import CountersignWire

extension FormMD5 {
    /// Adds `userId` and `token`, which a client sends once it is signed in; they are signed like all others. Source: legacy, L1.
    package func accompany(_ draft: inout Draft, userID: Int64, token: Secret) throws(Refusal) {
        guard let place = place(for: draft.method) else {
            throw Refusal(.malformed, "form-md5 signs GET, HEAD and POST, not \(draft.method)")
        }
        var added: [UInt8] = []
        Form.append("userId", Array("\(userID)".utf8).span, to: &added)
        token.withExposedBytes { Form.append("token", $0, to: &added) }
        draft.attach(added, to: place)
    }
}
