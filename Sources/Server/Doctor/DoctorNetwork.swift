import CountersignHTTP
import CountersignThreads
import CountersignWire
import Glibc

/// What the gateway reaches, and how it is reached.
extension Doctor {
    /// Days before a certificate's end from which it is reported.
    private static let certificateDays: Int64 = 21

    /// Returns the time that the backend's answer states: whole Unix seconds.
    mutating func checkUpstream() -> Int64? {
        guard let url = configuration.upstream else {
            add(
                .upstream, verdict: .warning, message: "no backend is set; the gateway answers with an echo",
                expected: "the backend's URL", command: "countersign serve --upstream URL")
            return nil
        }
        do throws(OperationalError) {
            let host = url.host.contains(":") ? "[\(url.host)]" : url.host
            let answer = try Probe.run(
                UpstreamTarget(host: url.host, port: Int(url.port), tls: try configuration.upstreamTLS()),
                sending: "HEAD / HTTP/1.1\r\nHost: \(host):\(url.port)\r\nConnection: close\r\n\r\n")
            guard answer.starts(with: Array("HTTP/1.".utf8)) else {
                add(
                    .upstream, verdict: .error, message: "\(url.text): what answers speaks no HTTP/1.1",
                    expected: "the backend", command: Doctor.command("curl", "-I", "\(url.text)/"))
                return nil
            }
            add(.upstream, message: "\(url.text) answers")
            return Probe.date(in: answer)
        } catch {
            add(
                .upstream, verdict: .error, message: error.message,
                expected: "the backend", command: Doctor.command("curl", "-I", "\(url.text)/"))
            return nil
        }
    }

    mutating func checkCertificate() {
        guard let paths = certificatePaths else {
            let isLocal = ServiceURL.isLoopback(host: configuration.listen.host)
            add(
                .certificate, verdict: isLocal ? .well : .error,
                message: "--tls off: the listener at \(configuration.listen) is plain HTTP",
                expected: isLocal
                    ? nil
                    : "TLS (`--tls auto`), or an address of this machine behind a proxy that ends TLS; "
                        + "callers of the plain address have to be moved first")
            return
        }
        guard access(paths.certificate, F_OK) == 0 else {
            add(.certificate, message: "\(paths.certificate): the first start makes it")
            return
        }
        guard let context = try? TLSContext(certificate: paths.certificate, key: paths.key),
            let expiry = context.expiry
        else {
            add(
                .certificate, verdict: .error, message: "\(paths.certificate): cannot be used with its key",
                expected: "a certificate and its key", command: "countersign serve --check-config")
            return
        }
        let days = (expiry - now) / 86_400
        let isLate = days < Doctor.certificateDays
        add(
            .certificate, verdict: expiry <= now ? .error : isLate ? .warning : .well,
            message: expiry <= now
                ? "\(paths.certificate): ended at \(CivilTime.rfc3339Text(expiry))"
                : "\(paths.certificate): valid for \(days) days",
            expected: isLate ? "at least \(Doctor.certificateDays) days" : nil,
            command: isLate ? "countersign reload, once the files are replaced" : nil)
    }

    private var certificatePaths: (certificate: String, key: String)? {
        switch configuration.tls {
        case .off: nil
        case .files(let certificate, let key): (certificate, key)
        case .automatic:
            ("\(configuration.data)/tls/certificate.pem", "\(configuration.data)/tls/key.pem")
        }
    }

    mutating func checkListener() {
        let address = configuration.listen
        guard address.port != 0 else {
            return add(.listener, message: "--listen has port 0: the address is not known here")
        }
        guard configuration.proxyProtocol != .require else {
            return add(
                .listener,
                message: "\(address) was not looked at: with --proxy-protocol require it answers only behind "
                    + "its proxy")
        }
        let loopback = ["0.0.0.0": "127.0.0.1", "::": "::1"]
        let host = loopback[address.host] ?? address.host
        do throws(OperationalError) {
            _ = try Probe.run(
                UpstreamTarget(host: host, port: Int(address.port), tls: nil), sending: nil)
        } catch {
            return add(
                .listener, verdict: .warning, message: error.message,
                expected: "a gateway that runs", command: "countersign serve")
        }
        guard let paths = certificatePaths else { return add(.listener, message: "\(address) answers") }
        do throws(OperationalError) {
            let tls: TLSContext
            do {
                tls = try TLSContext(
                    trusting: configuration.tls == .automatic ? .file(paths.certificate) : .system)
            } catch {
                throw OperationalError(error, in: "TLS")
            }
            _ = try Probe.run(UpstreamTarget(host: host, port: Int(address.port), tls: tls), sending: nil)
            add(.listener, message: "\(address) answers over TLS")
        } catch {
            add(
                .listener, verdict: configuration.tls == .automatic ? .error : .warning,
                message: error.message,
                expected: configuration.tls == .automatic
                    ? "TLS with \(paths.certificate)"
                    : "a chain that this machine trusts, for that name; from another machine it may be well",
                command: "openssl s_client -connect \(address)")
        }
    }
}

/// One connection, made and closed, with bounded waits.
private enum Probe {
    private static let seconds = 5
    private static let mostBytes = 16_384

    /// Connects, with TLS if the target has it; if there is a `request`, sends that and returns the beginning
    /// of the answer.
    static func run(_ target: UpstreamTarget, sending request: String?) throws(OperationalError) -> [UInt8] {
        let result = Monitor<Result<[UInt8], OperationalError>?>(nil)
        let loop: EventLoop
        do {
            try target.resolve()
            loop = try EventLoop()
            try loop.start(name: "doctor")
        } catch {
            throw failure(error)
        }
        defer {
            loop.stop()
            loop.join()
        }
        loop.perform {
            Task.detached(executorPreference: loop) {
                let outcome = await exchange(with: target, request: request, on: loop)
                result.with { $0 = outcome }
                result.wakeAll()
            }
        }
        return try result.wait { $0 }.get()
    }

    private static func exchange(
        with target: UpstreamTarget, request: String?, on loop: EventLoop
    ) async -> Result<[UInt8], OperationalError> {
        do throws(HTTPError) {
            let connection = try await ServiceConnection.open(to: target, on: loop, patience: seconds)
            defer { connection.close() }
            guard let request else { return .success([]) }
            connection.limitReading(toSeconds: seconds)
            connection.send(Array(request.utf8))
            var answer: [UInt8] = []
            while answer.count < mostBytes, !hasHead(answer) { try await connection.read(into: &answer) }
            return .success(answer)
        } catch {
            return .failure(failure(error))
        }
    }

    private static func failure(_ error: HTTPError) -> OperationalError {
        OperationalError(.unreachable, message: error.description)
    }

    private static func hasHead(_ bytes: [UInt8]) -> Bool {
        String(decoding: bytes, as: UTF8.self).contains("\r\n\r\n")
    }

    /// The field `Date` of an answer; nil if it has none.
    static func date(in answer: [UInt8]) -> Int64? {
        for line in String(decoding: answer, as: UTF8.self).split(separator: "\r\n") {
            guard line.lowercased().hasPrefix("date:") else { continue }
            let text = Array(line.dropFirst(5).utf8.drop { $0 == 0x20 })
            return CivilTime(http: text.span)?.seconds
        }
        return nil
    }
}
