import CountersignMemory
import CountersignTestServer
import Glibc

/// mitmproxy as the interception: an independent program terminates TLS with certificates of the attacker's
/// authority, and asks the lab about each request.
final class Mitmproxy: Sendable {
    private let process: ChildProcess
    private let decisionPort: LoopbackListener
    private let decisions: MitmproxyDecisionServer
    private let folder: String
    private let isTLS: Bool

    /// Starts `mitmdump` at `path` in front of a server on this machine. Blocks its thread until it listens,
    /// thirty seconds at most.
    init(_ path: String, server: UInt16, security: NetworkSecurity, decisions: MitmproxyDecisionServer)
        throws(LabError)
    {
        self.decisions = decisions
        folder = try Files.makeTemporaryFolder("mitmproxy")
        decisionPort = try LoopbackListener { decisions.serve(RawConnection($0)) }
        switch security {
        case .plain: isTLS = false
        case .tls: isTLS = true
        }
        do {
            try Mitmproxy.writeConfiguration(to: folder, security: security)
            process = try Mitmproxy.start(
                path, in: folder, origin: "\(isTLS ? "https" : "http")://127.0.0.1:\(server)",
                questionPort: decisionPort.number)
        } catch {
            decisionPort.stop()
            Files.removeFolder(folder)
            throw error
        }
        for _ in 0..<600 where decisions.port == nil { usleep(50_000) }
        guard decisions.port != nil else {
            let said = (try? Files.read("\(folder)/complaints")).map {
                String(decoding: $0.suffix(300), as: UTF8.self)
            }
            stop()
            throw LabError("\(path) does not listen; it says: \(said ?? "")")
        }
    }

    /// Writes the attacker's authority to the place where mitmproxy expects its own, and the add-on.
    private static func writeConfiguration(to folder: String, security: NetworkSecurity) throws(LabError) {
        try Files.write(Array(MitmproxyAddon.script.utf8), to: "\(folder)/addon.py")
        guard case .tls(let authority, _) = security else { return }
        guard let pem = try? authority.pem() else {
            throw LabError("the attacker's authority cannot be written")
        }
        try Files.write(pem.key + pem.certificate, to: "\(folder)/mitmproxy-ca.pem")
    }

    private static func start(
        _ path: String, in folder: String, origin: String, questionPort port: UInt16
    ) throws(LabError) -> ChildProcess {
        try ChildProcess(
            [
                path, "--mode", "reverse:\(origin)@127.0.0.1:0", "--ssl-insecure", "--quiet", "--scripts",
                "\(folder)/addon.py", "--set", "confdir=\(folder)", "--set", "http2=false", "--set",
                "keep_host_header=true", "--set", "upstream_cert=false", "--set", "connection_strategy=lazy",
            ],
            environment: [
                "PATH": "/usr/bin:/bin", "HOME": folder, MitmproxyAddon.portVariable: String(port),
            ],
            errors: "\(folder)/complaints")
    }

    /// Passes a victim's connection to mitmproxy, and closes it at the end.
    func serve(_ descriptor: Int32) {
        decisions.log.update { $0.connections += 1 }
        let client = RawConnection(descriptor)
        guard let port = decisions.port, let proxy = try? Socket.connect(to: "127.0.0.1", port: port) else {
            return
        }
        let link = RawConnection(proxy)
        ByteRelay(client: client.descriptor, server: link.descriptor) { _, _ in }.run()
    }

    /// The results of all connections so far. A victim may notice a failed handshake before mitmproxy reports
    /// it: blocks its thread until then, two seconds at most.
    var interception: InterceptionRecord {
        for _ in 0..<200 where isTLS {
            let seen = decisions.log.record
            if seen.handshakes + seen.abortedHandshakes.count >= seen.connections { break }
            usleep(10_000)
        }
        return decisions.log.record
    }

    func stop() {
        process.end(SIGKILL)
        decisionPort.stop()
        Files.removeFolder(folder)
    }
}

/// Answers the questions of ``MitmproxyAddon``, and counts its reports.
final class MitmproxyDecisionServer: Sendable {
    let log: InterceptionLog
    private let handler: ManInTheMiddle.InterceptionHandler
    /// Sends further copies of a request: mitmproxy forwards a request only once.
    private let server: @Sendable () throws(NetworkError) -> RawClient
    private let listening = Locked<UInt16?>(nil)

    init(
        log: InterceptionLog, server: @escaping @Sendable () throws(NetworkError) -> RawClient,
        handler: @escaping ManInTheMiddle.InterceptionHandler
    ) {
        self.log = log
        self.server = server
        self.handler = handler
    }

    /// The port of mitmproxy; nil until it has reported it.
    var port: UInt16? { listening.with { $0 } }

    /// Handles one question or one report.
    func serve(_ link: RawConnection) {
        var reader = MessageReader(link)
        guard let line = try? reader.line() else { return }
        if line == "request" {
            answerRequest(on: link, reader: &reader)
        } else if line == "handshake" {
            log.update { $0.handshakes += 1 }
        } else if let port = line.wordsBehind("running ") {
            listening.with { $0 = UInt16(port) }
        } else if let reason = line.wordsBehind("broken off ") {
            log.update { $0.abortedHandshakes.append(reason) }
        }
    }

    private func answerRequest(on link: RawConnection, reader: inout MessageReader) {
        guard let request = try? reader.request().message else { return }
        log.update { $0.requests += 1 }
        var last: RawResponse?
        var isForwarded = false
        let answer = handler(request) { asked in
            let response: RawResponse
            if isForwarded {
                response = try server().exchange(asked.bytes, method: asked.method).message
            } else {
                isForwarded = true
                link.write(asked.bytes)
                response = try reader.response(to: asked.method).message
            }
            last = response
            return response
        }
        log.update { $0.exchanges.append(RawExchange(request: request, response: last)) }
        // Without an answer the lab closes the connection, and mitmproxy closes the victim's.
        if let answer { link.write(answer.bytes) }
    }
}

extension String {
    /// The rest of the line after `words`; nil where it begins otherwise.
    fileprivate func wordsBehind(_ words: String) -> String? {
        hasPrefix(words) ? String(dropFirst(words.count)) : nil
    }
}

/// The add-on that mitmproxy runs: it asks the lab about each request, over one connection for each.
enum MitmproxyAddon {
    /// The environment variable with the port on which the lab listens for questions.
    static let portVariable = "COUNTERSIGN_LAB_PORT"

    /// For mitmproxy 11, in Python. A question is a line followed by HTTP. The answer is a request to
    /// forward, a response for the victim, or nothing, which closes the connection.
    static let script = """
        from asyncio import IncompleteReadError, open_connection
        from os import environ

        from mitmproxy import ctx, http
        from mitmproxy.net.http import http1


        async def tell(line, message=b""):
            reader, writer = await open_connection("127.0.0.1", int(environ["\(portVariable)"]))
            writer.write(line.encode() + b"\\n" + message)
            await writer.drain()
            return reader, writer


        async def mention(line):
            reader, writer = await tell(line)
            await reader.read()  # until it was taken down
            writer.close()


        async def read(reader):
            lines = (await reader.readuntil(b"\\r\\n\\r\\n")).split(b"\\r\\n")[:-2]
            is_response = lines[0].startswith(b"HTTP/")
            message = http1.read_response_head(lines) if is_response else http1.read_request_head(lines)
            message.raw_content = await reader.readexactly(int(message.headers.get("content-length", 0)))
            return message


        class Asking:
            async def running(self):
                address = ctx.master.addons.get("proxyserver").listen_addrs()[0]
                await mention(f"running {address[1]}")

            async def tls_established_client(self, data):
                await mention("handshake")

            async def tls_failed_client(self, data):
                await mention(f"broken off {data.conn.error}")

            async def request(self, flow):
                flow.metadata["lab"] = await tell("request", http1.assemble_request(flow.request))
                await self.decide(flow)

            async def response(self, flow):
                if "lab" in flow.metadata:
                    _, writer = flow.metadata["lab"]
                    writer.write(http1.assemble_response(flow.response))
                    await self.decide(flow)

            async def error(self, flow):
                if "lab" in flow.metadata:
                    flow.metadata.pop("lab")[1].close()

            async def decide(self, flow):
                reader, writer = flow.metadata["lab"]
                try:
                    answer = await read(reader)
                except (IncompleteReadError, ConnectionError):
                    flow.metadata.pop("lab")
                    flow.kill()
                    return
                if isinstance(answer, http.Response):
                    flow.metadata.pop("lab")[1].close()
                    flow.response = answer
                else:
                    flow.request.data.method = answer.data.method
                    flow.request.data.path = answer.data.path
                    flow.request.headers = answer.headers
                    flow.request.raw_content = answer.raw_content


        addons = [Asking()]

        """
}
