import CountersignTestKit
import Glibc

/// mitmproxy in the middle: a program that is not ours takes TLS apart, under certificates that it makes with the attacker's authority, and
/// asks the lab what is to become of each request.
final class Mitmproxy: Sendable {
    private let process: ChildProcess
    private let questions: PublicPort
    private let clerk: MitmproxyClerk
    private let folder: String
    private let isTLS: Bool

    /// Starts `mitmdump` at that path in front of a server on this machine. Blocks its thread until it listens, for thirty seconds at most.
    init(_ path: String, server: UInt16, security: NetworkSecurity, clerk: MitmproxyClerk) throws(StageFault) {
        self.clerk = clerk
        folder = try Files.makeTemporaryFolder("mitmproxy")
        questions = try PublicPort { clerk.hear(Link($0)) }
        switch security {
        case .plain: isTLS = false
        case .tls: isTLS = true
        }
        do {
            try Mitmproxy.furnish(folder, security)
            process = try Mitmproxy.start(
                path, folder, origin: "\(isTLS ? "https" : "http")://127.0.0.1:\(server)", asking: questions.number)
        } catch {
            questions.stop()
            Files.removeFolder(folder)
            throw error
        }
        for _ in 0..<600 where clerk.port == nil { usleep(50_000) }
        guard clerk.port != nil else {
            let said = (try? Files.read("\(folder)/complaints")).map { String(decoding: $0.suffix(300), as: UTF8.self) }
            stop()
            throw StageFault("\(path) does not listen; it says: \(said ?? "")")
        }
    }

    /// The attacker's authority where mitmproxy looks for its own, and the addon.
    private static func furnish(_ folder: String, _ security: NetworkSecurity) throws(StageFault) {
        try Files.write(Array(MitmproxyAddon.script.utf8), to: "\(folder)/addon.py")
        guard case .tls(let authority, _) = security else { return }
        guard let pem = try? authority.pem() else { throw StageFault("the attacker's authority cannot be written") }
        try Files.write(pem.key + pem.certificate, to: "\(folder)/mitmproxy-ca.pem")
    }

    private static func start(
        _ path: String, _ folder: String, origin: String, asking port: UInt16
    ) throws(StageFault) -> ChildProcess {
        try ChildProcess(
            [
                path, "--mode", "reverse:\(origin)@127.0.0.1:0", "--ssl-insecure", "--quiet", "--scripts",
                "\(folder)/addon.py", "--set", "confdir=\(folder)", "--set", "http2=false", "--set",
                "keep_host_header=true", "--set", "upstream_cert=false", "--set", "connection_strategy=lazy",
            ],
            environment: ["PATH": "/usr/bin:/bin", "HOME": folder, MitmproxyAddon.portVariable: String(port)],
            errors: "\(folder)/complaints")
    }

    /// Leads a victim's connection into it, and closes it in the end.
    func serve(_ descriptor: Int32) {
        clerk.ledger.note { $0.connections += 1 }
        let client = Link(descriptor)
        guard let port = clerk.port, let proxy = try? Socket.connect(to: "127.0.0.1", port: port) else { return }
        let link = Link(proxy)
        Pump(client: client.descriptor, server: link.descriptor) { _, _ in }.run()
    }

    /// What came of each connection so far. A victim knows that it broke off before mitmproxy says so: blocks its thread meanwhile, for two
    /// seconds at most.
    var interposed: Interposed {
        for _ in 0..<200 where isTLS {
            let seen = clerk.ledger.interposed
            if seen.handshakes + seen.brokenOff.count >= seen.connections { break }
            usleep(10_000)
        }
        return clerk.ledger.interposed
    }

    func stop() {
        process.end(SIGKILL)
        questions.stop()
        Files.removeFolder(folder)
    }
}
