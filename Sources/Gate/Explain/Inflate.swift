import CZlib
import CountersignWire

/// Bodies as they were before they were compressed. Source: RFC 9110 §8.4.1, gzip and deflate; RFC 1951.
enum Inflate {
    /// What the body stands for by its Content-Encoding; none where it has none, or does not keep to it.
    static func bodies(of draft: Draft) -> [[UInt8]] {
        guard let coding = draft.value(of: "content-encoding")?.text.lowercased() else { return [] }
        switch coding {
        // By the standard deflate has zlib's frame; some send it bare.
        case "gzip", "x-gzip": return [inflate(draft.body, windowBits: 15 + 16)].compactMap { $0 }
        case "deflate": return [15, -15].compactMap { inflate(draft.body, windowBits: $0) }
        default: return []
        }
    }

    /// Nil where `bytes` are not one whole stream of that kind, or would become larger than ``Budget/inflated``:
    /// a kilobyte may stand for a gigabyte. `windowBits` as zlib has it: +16 for gzip, negative for bare deflate.
    static func inflate(_ bytes: [UInt8], windowBits: Int32) -> [UInt8]? {
        guard !bytes.isEmpty, bytes.count <= Budget.inflated else { return nil }
        var stream = z_stream()
        guard cs_inflate_start(&stream, windowBits) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        var input = bytes
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        return input.withUnsafeMutableBufferPointer { input -> [UInt8]? in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(truncatingIfNeeded: input.count)
            while true {
                let status = chunk.withUnsafeMutableBufferPointer { chunk in
                    stream.next_out = chunk.baseAddress
                    stream.avail_out = UInt32(truncatingIfNeeded: chunk.count)
                    return CZlib.inflate(&stream, Z_NO_FLUSH)
                }
                let count = chunk.count - Int(stream.avail_out)
                guard output.count + count <= Budget.inflated else { return nil }
                output += chunk[..<count]
                if status == Z_STREAM_END { return stream.avail_in == 0 ? output : nil }
                // No progress without an error: the stream is cut off.
                guard status == Z_OK, count > 0 else { return nil }
            }
        }
    }
}
