import CountersignWire
import Synchronization

/// Where verified requests go: a backend's host and port, and whether to speak TLS to it.
///
/// Its addresses are looked up at the start and again from time to time, never on the way of a request.
package final class UpstreamTarget: Sendable {
    package let host: String
    package let port: Int
    let tls: TLSContext?
    private let addresses = AddressBook()

    package init(host: String, port: Int, tls: TLSContext?) {
        self.host = host
        self.port = port
        self.tls = tls
    }

    /// Asks the resolver, and keeps the old addresses where it fails. Blocks; not for a loop.
    package func resolve() throws(HTTPFault) {
        addresses.replace(try SocketAddress.resolve(host: host, port: port))
    }

    func nextAddresses() -> [SocketAddress] { addresses.all }
}

private final class AddressBook: @unchecked Sendable {
    private let lock = Lock()
    private var addresses: [SocketAddress] = []

    var all: [SocketAddress] { lock.hold { addresses } }

    func replace(_ new: [SocketAddress]) { lock.hold { addresses = new } }
}
