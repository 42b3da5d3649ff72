import CountersignWire

/// What stands in every request of the app's, and so is no secret: needed to write one.
package struct Destination: Sendable {
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
