import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

extension RawRequest {
    /// The request signed with the app's key, as the app signs. Nil where the scheme cannot sign such a
    /// request.
    func signed(
        with scheme: some Scheme, as id: String, secret: Secret, at destination: SigningContext
    ) -> RawRequest? {
        guard let keyID = KeyID(id) else { return nil }
        let credentials = Credentials(
            keyID: keyID, key: SigningKey(secret), platform: destination.platform,
            version: destination.version)
        return signed(with: scheme, credentials: credentials, at: destination)
    }

    func signed(with scheme: some Scheme, credentials: Credentials, at destination: SigningContext)
        -> RawRequest?
    {
        var draft = Draft(
            method: method, target: Array(target.utf8), authority: destination.authority,
            transport: destination.transport)
        draft.fields = fields.lines.map { Draft.Field(name: $0.name, value: $0.value) }.filter {
            !$0.isNamed("host")
        }
        draft.body = body
        do {
            try scheme.sign(
                &draft, as: credentials, at: Int64(time(nil)), nonce: Nonce.make(for: scheme.name))
        } catch {
            return nil
        }
        let lines = draft.fields.map {
            RawFields.Line(name: $0.name, value: String(decoding: $0.value, as: UTF8.self))
        }
        return RawRequest(
            method: method, target: String(decoding: draft.target, as: UTF8.self),
            fields: RawFields([.init(name: "Host", value: destination.authority)] + lines), body: draft.body)
    }
}

/// The values needed to write a request of the app's. They occur in each of its requests, and so are not
/// secret.
package struct SigningContext: Sendable {
    /// `bank.test:12345`, the server's public address.
    package var authority: String
    package var transport: Request.Transport
    package var platform: String
    package var version: String

    package init(authority: String, transport: Request.Transport, platform: String, version: String) {
        self.authority = authority
        self.transport = transport
        self.platform = platform
        self.version = version
    }
}
