import CountersignMemory
import Testing
import Waiting

@testable import CountersignTransport

struct UploadChannelTests {
    /// Were it only ever emptied when all of it went out, a file of gigabytes would be in memory before it
    /// was sent.
    @Test func aStreamThatIsAlwaysAheadIsNotKept() async throws {
        let length = 16 * UploadChannel.limit
        let channel = UploadChannel(.bytes(length)) {}
        let pushed = Locked(0)
        let pump = Task.detached {
            let piece = [UInt8](repeating: 0x61, count: 10_000)
            var left = length
            while left > 0 {
                let count = min(left, piece.count)
                pushed.with { $0 += count }
                try await channel.push(Array(piece[..<count]))
                left -= count
            }
            channel.close(nil)
        }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_384, alignment: 1)
        defer { room.deallocate() }
        var (taken, mostHeld) = (0, 0)
        sending: while true {
            switch channel.take(into: room) {
            case .bytes(let count):
                taken += count
                mostHeld = max(mostHeld, channel.bufferedBytes)
            case .nothingYet: break
            case .end: break sending
            case .failed(let detail):
                Issue.record("\(detail)")
                break sending
            }
            // The stream is ahead again before more is taken.
            await until("the stream is ahead") {
                pushed.with { $0 == length || $0 - taken >= UploadChannel.limit }
            }
        }
        try await pump.value
        #expect(taken == length)
        #expect(mostHeld < 3 * UploadChannel.limit)
    }
}
