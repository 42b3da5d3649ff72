import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

extension RawRequest {
    /// Signed as the app would, by somebody who has its key. Nil where the scheme cannot sign such a request.
    func signed(
        with scheme: some Scheme, as id: String, _ secret: Secret, at destination: Destination
    ) -> RawRequest? {
        guard let keyID = KeyID(id) else { return nil }
        let credentials = Credentials(
            keyID: keyID, key: SigningKey(secret), platform: destination.platform, version: destination.version)
        return signed(with: scheme, credentials, at: destination)
    }

    func signed(with scheme: some Scheme, _ credentials: Credentials, at destination: Destination) -> RawRequest? {
        var draft = Draft(
            method: method, target: Array(target.utf8), authority: destination.authority,
            transport: destination.transport)
        draft.fields = fields.lines.map { Draft.Field($0.name, $0.value) }.filter { !$0.isNamed("host") }
        draft.body = body
        do {
            try scheme.sign(&draft, as: credentials, at: Int64(time(nil)), nonce: Nonce.make(for: scheme.name))
        } catch {
            return nil
        }
        let lines = draft.fields.map { RawFields.Line($0.name, String(decoding: $0.value, as: UTF8.self)) }
        return RawRequest(
            method, String(decoding: draft.target, as: UTF8.self),
            fields: RawFields([.init("Host", destination.authority)] + lines), body: draft.body)
    }
}
