import CountersignSeal

/// What lies in the binary of every copy of the app, and so in the hands of whoever takes one apart.
package struct AppKey: Sendable {
    /// `app_id`, `auth_key`, a release key id… empty where requests are not signed.
    package var id: String
    /// As it signs: of a release key the bytes, not the text that stands for them.
    package var secret: Secret
    /// The ladder's salt or key; empty where its rung has none.
    package var ladder: String

    package init(id: String, secret: Secret, ladder: String) {
        self.id = id
        self.secret = secret
        self.ladder = ladder
    }
}
