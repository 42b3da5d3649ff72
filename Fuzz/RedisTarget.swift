// Replies of a Redis server, and what is read from them.
@testable import CountersignReplay

/// The replies do not depend on where the bytes are cut, and are bounded; a server's description is read or
/// refused, and an epoch is written as it was read.
@Sendable func fuzzRedis(_ bytes: Span<UInt8>) {
    let input = bytes.withUnsafeBufferPointer { Array($0) }
    let whole = replies(in: [input])
    let middle = input.count / 2
    let halves = replies(in: [Array(input.prefix(middle)), Array(input.dropFirst(middle))])
    let bytewise = replies(in: input.map { [$0] })
    precondition(whole == halves && whole == bytewise, "a reply that depends on the cut")
    precondition(whole.count <= input.count)
    let text = String(decoding: input, as: UTF8.self)
    if let status = try? RedisServerStatus(info: text, settings: ["maxmemory": text]) {
        try? status.check(window: 60)
    }
    if let epoch = ReplayEpoch(text) {
        precondition(ReplayEpoch(epoch.text) == epoch)
        precondition(epoch.next(for: epoch.identity, need: epoch.need, now: .max).floor >= epoch.floor)
        _ = epoch.bound(for: 1, now: Int64(UInt32.max))
    }
    if let address = RedisAddress(url: text) { precondition(!address.servers.isEmpty) }
}

private func replies(in parts: [[UInt8]]) -> [RESPReply] {
    var reader = RESPReader()
    var replies: [RESPReply] = []
    for part in parts {
        reader.append(part)
        do {
            while let reply = try reader.next() { replies.append(reply) }
        } catch {
            return replies
        }
    }
    return replies
}
