import CountersignWire

/// Who signs: what a scheme needs beside the request.
package struct Credentials: Sendable {
    package var keyID: KeyID
    package var key: SigningKey
    /// message-signatures: the release that calls, where the key id is a session's token; nil where it is the key id.
    package var release: KeyID?
    /// Schemes that name the app's platform and version in each request; otherwise unused.
    package var platform: String
    package var version: String
    /// Seconds east of UTC of the wall clock that form-md5 sends.
    package var timezoneOffset: Int

    /// form-md5: where the private key stands in the string to sign.
    package var formMD5Key = FormMD5.KeyPlace.pair

    /// sigv4's scope: words that both ends agree on, signed and otherwise without meaning here.
    package var region = "countersign"
    package var service = "execute-api"

    /// A session's: `token` as its key id, beside the release that calls.
    package init(_ token: SessionToken, key: SigningKey, release: KeyID) {
        self.init(keyID: KeyID(token), key: key)
        self.release = release
    }

    package init(keyID: KeyID, key: SigningKey, platform: String = "", version: String = "", timezoneOffset: Int = 0) {
        self.keyID = keyID
        self.key = key
        self.platform = platform
        self.version = version
        self.timezoneOffset = timezoneOffset
    }
}
