import CountersignWire

/// A connection to a service beside the gateway, such as a Redis server: bytes both ways, plain or under TLS.
/// Confined to its loop, where at most one task reads at a time.
package final class ServiceConnection: @unchecked Sendable {
    private let stream: Stream
    private let input: Buffer
    private let output: Buffer
    /// What the output buffer has no room for yet.
    private var backlog: [UInt8] = []
    private var isWriting = false

    private init(_ stream: Stream) {
        self.stream = stream
        input = stream.loop.buffers.take()
        output = stream.loop.outputs.take()
    }

    /// Connects to the first address that answers, each within `patience` seconds.
    package static func open(
        to target: UpstreamTarget, on loop: EventLoop, patience: Int
    ) async throws(HTTPError) -> ServiceConnection {
        do {
            let dialer = UpstreamDialer(target: target, loop: loop, patience: patience)
            let opened = try await dialer.connect()
            opened.stream.deadline = .max
            return ServiceConnection(opened.stream)
        } catch {
            throw HTTPError(error.detail)
        }
    }

    package var isClosed: Bool { stream.isClosed }

    /// Bytes that the socket has not taken yet.
    package var unsent: Int { backlog.count + output.count }

    /// Ends a wait to read once that many seconds have passed; nil for no limit.
    package func limitReading(toSeconds seconds: Int?) {
        stream.readDeadline = seconds.map { stream.loop.seconds + Int64($0) + 1 } ?? .max
    }

    /// Appends at least one byte that arrives to `bytes`. Throws at the end of the input.
    package func read(into bytes: inout [UInt8]) async throws(HTTPError) {
        let count: Int
        do {
            count = try await stream.read(into: input)
        } catch {
            throw ServiceConnection.error(error)
        }
        guard count > 0 else { throw HTTPError("the connection was closed") }
        bytes.append(contentsOf: input.filled)
        input.clear()
    }

    /// Sends the bytes after those that were given before. Waits for nothing: what the socket does not take
    /// is sent later. A failure is seen by the reader.
    package func send(_ bytes: [UInt8]) {
        guard !isClosed else { return }
        backlog.append(contentsOf: bytes)
        if !isWriting { write() }
    }

    package func close() {
        stream.close()
        backlog = []
    }

    private func write() {
        while !stream.isClosed, !backlog.isEmpty || !output.isEmpty {
            let count = backlog.withUnsafeBytes { output.append($0) }
            backlog.removeFirst(count)
            guard !stream.writeIfReady(output) else { continue }
            isWriting = true
            Task.detached(executorPreference: stream.loop) { [self] in await finishWriting() }
            return
        }
    }

    private func finishWriting() async {
        do {
            try await stream.write(output)
        } catch {
            stream.close()
        }
        isWriting = false
        write()
    }

    private static func error(_ failure: Stream.StreamError) -> HTTPError {
        switch failure {
        case .closed: HTTPError("the connection was closed")
        case .timedOut: HTTPError("no answer in time")
        case .tls: HTTPError("TLS failed")
        }
    }
}
