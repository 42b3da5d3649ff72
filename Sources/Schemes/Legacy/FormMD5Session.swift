import CountersignSeal
import CountersignWire

extension FormMD5 {
    /// Adds `userId` and `token`, which a client sends once it is signed in; they are signed like all others. Source: legacy, L1.
    package func accompany(_ draft: inout Draft, userID: Int64, token: Secret) throws(Refusal) {
        let place = try place(in: draft)
        var added = AddedParameters(place)
        added.append("userId", value: Array("\(userID)".utf8).span)
        token.withExposedBytes { added.append("token", value: $0) }
        draft.attach(added.text, to: place)
    }
}
