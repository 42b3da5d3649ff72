import Glibc

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

    /// Resolves now, and again every half minute on a thread of its own, for as long as the process lives. A name that
    /// is not found is a backend that is down: requests fail until it is.
    package func keepResolving() {
        try? resolve()
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let target = Unmanaged<UpstreamTarget>.fromOpaque(context).takeRetainedValue()
                while true {
                    sleep(UpstreamTarget.resolveSeconds)
                    try? target.resolve()
                }
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }

    private static let resolveSeconds: UInt32 = 30

    func nextAddresses() -> [SocketAddress] { addresses.all }
}

private final class AddressBook: @unchecked Sendable {
    private let lock = Lock()
    private var addresses: [SocketAddress] = []

    var all: [SocketAddress] { lock.hold { addresses } }

    func replace(_ new: [SocketAddress]) { lock.hold { addresses = new } }
}
