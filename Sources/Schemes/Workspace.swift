import CountersignWire

/// Buffers that one request's verdict needs, kept from one to the next so that a verdict allocates nothing.
///
/// A workspace belongs to one request from claim to verdict: what a scheme's `claim` leaves here, its `spell` reads.
package struct Workspace: ~Copyable, Sendable {
    package var text = StringToSign()
    /// message-signatures: the signature that was chosen, and what it names.
    var signature = SignatureInput()
    var components: [Component] = []
    /// form-md5, auth-v1, auth-v2: the parameters, decoded into `decoded`, sorted by name. auth-v4: the body's members,
    /// their values as they are signed.
    var parameters: [FormParameter] = []
    var decoded = ByteBuffer(capacity: 4096)
    var sigV4 = SigV4Space()
    /// auth-v4: scheme and authority of the URL as clients write it, without a slash at the end; nil where it is the one
    /// that the request came to. Whoever knows the app's policy sets it before `spell`.
    package var publicURL: [UInt8]?
    /// form-md5: where the private key stands in the string to sign. Set likewise.
    package var formMD5Key = FormMD5.KeyPlace.pair

    /// sigv4: the canonical request, whose digest the string to sign ends in.
    package var canonicalRequest: String { sigV4.canonical.text }

    package init() {
        components.reserveCapacity(64)
        parameters.reserveCapacity(64)
    }
}
