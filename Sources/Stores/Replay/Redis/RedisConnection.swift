import CountersignHTTP
import CountersignSeal
import CountersignWire

/// A connection to one Redis server on which one task sends commands and waits for their replies. Confined to
/// its loop.
final class RedisConnection: @unchecked Sendable {
    /// Seconds to connect, and to wait for a reply.
    static let patience = 1

    let service: ServiceConnection
    private let name: String
    private var reader = RESPReader()
    private var received: [UInt8] = []

    private init(_ service: ServiceConnection, name: String) {
        self.service = service
        self.name = name
    }

    /// Connects, proves the password and chooses the database. `name` is the server's, for messages.
    static func open(
        to target: UpstreamTarget, of address: RedisAddress, name: String, on loop: EventLoop
    ) async throws(OperationalError) -> RedisConnection {
        let service: ServiceConnection
        do {
            service = try await ServiceConnection.open(to: target, on: loop, patience: patience)
        } catch {
            throw OperationalError(.unreachable, message: "Redis at \(name): \(error.description)")
        }
        let connection = RedisConnection(service, name: name)
        do throws(OperationalError) {
            try await connection.authenticate(by: address)
            return connection
        } catch {
            connection.close()
            throw error
        }
    }

    func close() { service.close() }

    private func authenticate(by address: RedisAddress) async throws(OperationalError) {
        if let password = try address.findPassword() {
            var parts = ["AUTH"]
            if let user = address.user { parts.append(user) }
            let text = password.withExposedBytes { bytes in
                String(decoding: Array(bytes.indices.map { bytes[$0] }), as: UTF8.self)
            }
            parts.append(text)
            _ = try await result(of: parts, named: "AUTH")
        }
        if address.database != 0 { _ = try await result(of: ["SELECT", String(address.database)]) }
    }

    /// The replies to commands that are sent together.
    func replies(to commands: [[String]]) async throws(OperationalError) -> [RESPReply] {
        var bytes: [UInt8] = []
        for command in commands { RESPCommand.append(command, to: &bytes) }
        service.send(bytes)
        defer { service.limitReading(toSeconds: nil) }
        var replies: [RESPReply] = []
        for _ in commands {
            service.limitReading(toSeconds: RedisConnection.patience)
            replies.append(try await nextReply())
        }
        return replies
    }

    /// The reply to one command; throws if it is an error.
    func result(of command: [String], named title: String? = nil) async throws(OperationalError) -> RESPReply
    {
        let reply = try await replies(to: [command])[0]
        if case .error(let message) = reply {
            throw failure(
                "\(title ?? command.prefix(2).joined(separator: " ")): \(RedisServerStatus.quotable(message))"
            )
        }
        return reply
    }

    func status() async throws(OperationalError) -> RedisServerStatus {
        var info = ""
        for section in RedisServerStatus.sections {
            guard let text = try await result(of: ["INFO", section]).text else {
                throw failure("INFO: expected a text")
            }
            info += text + "\n"
        }
        var settings: [String: String] = [:]
        for pattern in RedisServerStatus.patterns {
            guard case .array(let parts) = try await result(of: ["CONFIG", "GET", pattern]) else {
                throw failure("CONFIG GET: expected a list")
            }
            for index in stride(from: 0, to: parts.count - 1, by: 2) {
                if let name = parts[index].text, let value = parts[index + 1].text { settings[name] = value }
            }
        }
        do throws(OperationalError) {
            return try RedisServerStatus(info: info, settings: settings)
        } catch {
            throw failure(error.message, kind: error.kind)
        }
    }

    /// The server's clock, in whole Unix seconds.
    func time() async throws(OperationalError) -> Int64 {
        guard case .array(let parts) = try await result(of: ["TIME"]), let text = parts.first?.text,
            let seconds = Int64(text), (0...Int64(UInt32.max)).contains(seconds)
        else { throw failure("TIME: expected Unix seconds") }
        return seconds
    }

    /// Makes the server keep the script; returns the name by which `EVALSHA` calls it.
    func load(script: String) async throws(OperationalError) -> String {
        guard let name = try await result(of: ["SCRIPT", "LOAD", script]).text, name.utf8.count == 40,
            name.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { throw failure("SCRIPT LOAD: expected a SHA-1") }
        return name
    }

    func failure(_ text: String, kind: OperationalError.Kind = .failed) -> OperationalError {
        OperationalError(kind, message: "Redis at \(name): \(text)")
    }

    /// The next reply, however long it takes.
    func nextReply() async throws(OperationalError) -> RESPReply {
        while true {
            do throws(RESPReader.ReaderError) {
                if let reply = try reader.next() { return reply }
            } catch {
                throw failure("a reply of an unknown form")
            }
            received.removeAll(keepingCapacity: true)
            do throws(HTTPError) {
                try await service.read(into: &received)
            } catch {
                throw failure(error.description, kind: .unreachable)
            }
            reader.append(received)
        }
    }
}
