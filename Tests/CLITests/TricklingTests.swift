import CountersignClient
import CountersignSchemes
import CountersignTransport
import CountersignWire
import Glibc
import Testing

@testable import CountersignCLI

/// A server that goes on sending, a byte at a time.
@Suite struct TricklingTests {
    @Test func anAnswerThatTricklesIsNotWaitedForForever() async throws {
        let server = try TricklingServer()
        let profile = Profile(
            url: "http://127.0.0.1:\(server.port)", keyID: try #require(.init("r_1")), scheme: .messageSignatures)
        let line = try ServerLine(profile, .within(.milliseconds(600)))
        let transport = ServerTransport(line: line)
        let began = DeviceTime().milliseconds
        let draft = Draft(method: "POST", target: Array("/countersign/v1/token".utf8), authority: line.origin.authority)
        do {
            _ = try await transport.send(draft)
            Issue.record("it ended")
        } catch {
            #expect(error.fate == .brokenOff)
        }
        let took = DeviceTime().milliseconds - began
        // Its clock and ours need not turn together.
        #expect((590..<5_000).contains(took), "\(took) ms")
        // It was the trickle: more came than the head.
        #expect(server.stop() > 3)
    }

    /// Four exchanges, each as slow as may be, are over before who waits for the vault gives up.
    @Test func whoWaitsForTheVaultWaitsLonger() throws {
        #expect((ServerTransport.patience + .seconds(5)) * 4 < StateKeeper.patience)
    }
}

/// One connection on a thread of its own. Safe to share: the count is read once the thread is over.
private final class TricklingServer: @unchecked Sendable {
    let port: UInt16
    private let listener: Int32
    private var thread = pthread_t()
    private var sent = 0

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
                bind(listener, place, length) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, place, &length) == 0
            }
        }
        guard isListening else { throw Fault(.failed, "no listener") }
        port = UInt16(bigEndian: address.sin_port)
        pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<TricklingServer>.fromOpaque(argument).takeUnretainedValue().trickle()
                return nil
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// How many bytes went out behind the head.
    func stop() -> Int {
        pthread_join(thread, nil)
        close(listener)
        return sent
    }

    private func trickle() {
        let connection = accept(listener, nil, nil)
        defer { close(connection) }
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".utf8)
        guard send(connection, head, head.count, Int32(MSG_NOSIGNAL)) == head.count else { return }
        // Whoever gave up has closed; then nothing can be sent any more. Who has not in ten seconds never will.
        while sent < 200, send(connection, [0x20], 1, Int32(MSG_NOSIGNAL)) == 1 {
            sent += 1
            usleep(50_000)
        }
    }
}
