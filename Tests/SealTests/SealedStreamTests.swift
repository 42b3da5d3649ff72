import CountersignSeal
import Testing

/// Chunks open in their order alone, unaltered, and only the last one says that it is.
@Suite struct SealedStreamTests {
    private let key = Secret(random: SealedStream.keyBytes)
    private let data: [UInt8] = [9]

    private func open(_ chunks: [[UInt8]], head: [UInt8]) throws -> [(
        bytes: [UInt8], place: SealedStream.Place
    )] {
        let opener = try #require(SealedStream.Opener(key: key, head: head))
        return try chunks.map { chunk in
            var bytes: [UInt8] = [1, 1, 1, 1, 1, 1]
            let place = try opener.open(chunk[...], into: &bytes, boundTo: data)
            return (bytes, place)
        }
    }

    @Test func chunks() throws {
        let sealer = try #require(SealedStream.Sealer(key: key))
        let plain: [[UInt8]] = [[1, 2, 3], Array(repeating: 4, count: 100), []]
        let sealed = plain.enumerated().map { place, bytes in
            sealer.seal(bytes.span, at: place == 2 ? .last : .inner, boundTo: data)
        }
        #expect(sealed.map(\.count) == plain.map { $0.count + SealedStream.overhead })
        let opened = try open(sealed, head: sealer.head)
        #expect(opened.map(\.bytes) == plain && opened.map(\.place) == [.inner, .inner, .last])
        for wrong in [
            [sealed[1]], [sealed[0], sealed[0]], [sealed[0], sealed[2]], [Array(sealed[0].dropLast())], [[]],
        ] {
            #expect(throws: SealError.self) { try open(wrong, head: sealer.head) }
        }
        let opener = try #require(SealedStream.Opener(key: key, head: sealer.head))
        var bytes: [UInt8] = []
        #expect(throws: SealError.self) { try opener.open(sealed[0][...], into: &bytes, boundTo: [8]) }
        #expect(SealedStream.Sealer(key: Secret(random: 31)) == nil)
        #expect(SealedStream.Opener(key: key, head: [1]) == nil)
    }
}
