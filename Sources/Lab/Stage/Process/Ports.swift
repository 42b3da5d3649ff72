import Glibc

/// Ports for servers that are restarted. The kernel gives outgoing connections those from 32768 up (`ip_local_port_range`), and one that has
/// taken a server's port while the server was down keeps it from coming back.
package enum Ports {
    /// One on 127.0.0.1 that nobody listens on at this moment.
    package static func free() throws(StageFault) -> UInt16 {
        for _ in 0..<200 {
            let port = UInt16.random(in: 12_000..<32_000)
            if isFree(port) { return port }
        }
        throw StageFault("no port of 127.0.0.1 is free between 12000 and 32000")
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard file >= 0 else { return false }
        defer { close(file) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
