import CountersignWire
import Glibc

/// Reads files whose size is bounded by their reader.
package enum FileReader {
    /// Reads into `bytes` from their start until they are full or the file ends. Returns the number of bytes
    /// read; nil if a read failed, with the reason in `errno`. Blocks on a file that blocks.
    package static func fill(_ bytes: inout [UInt8], from file: Int32) -> Int? {
        var count = 0
        while count < bytes.count {
            let read = bytes.withUnsafeMutableBytes { buffer in
                Glibc.read(file, buffer.baseAddress.map { $0 + count }, buffer.count - count)
            }
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { return nil }
            if read == 0 { break }
            count += read
        }
        return count
    }

    /// All bytes of a file; nil if there are more than `limit`. Memory grows with what is there, not with
    /// `limit`. Throws the reason if a read failed; `name` is the file's, for the message.
    package static func bytes(
        of file: Int32, limit: Int, name: String
    ) throws(OperationalError) -> [UInt8]? {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            guard let count = fill(&chunk, from: file) else {
                throw SystemCallError(errno, while: "\(name): cannot read").fault(.failed)
            }
            bytes += chunk[..<count]
            if bytes.count > limit { return nil }
            if count < chunk.count { return bytes }
        }
    }
}
