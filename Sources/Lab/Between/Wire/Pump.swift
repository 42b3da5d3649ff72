import Glibc

/// Carries bytes between two sockets as they come, and shows them to whoever listens.
struct Pump {
    let client: Int32
    let server: Int32
    /// Called before the bytes go on: who has had an answer knows that it was heard.
    let hear: (_ bytes: [UInt8], _ side: Ear.Side) -> Void

    /// Returns when the server or both have ended, or when nothing has come for a minute.
    func run() {
        var clientHasEnded = false
        while true {
            var both = [
                pollfd(fd: clientHasEnded ? -1 : client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&both, 2, 60_000)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            if both[0].revents != 0, !pass(from: client, to: server, .client) {
                // It may still wait for an answer.
                clientHasEnded = true
                shutdown(server, Int32(SHUT_WR))
            }
            if both[1].revents != 0, !pass(from: server, to: client, .server) { return }
        }
    }

    /// False at the end.
    private func pass(from: Int32, to: Int32, _ side: Ear.Side) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(from, &bytes, bytes.count)
        guard count > 0 else { return false }
        bytes.removeLast(bytes.count - count)
        hear(bytes, side)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(to, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
