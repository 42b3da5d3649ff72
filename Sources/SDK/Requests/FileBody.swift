import CountersignTransport

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A file as a request's body: a few pieces of it are in memory at a time.
struct FileBody: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    let path: String

    /// Bytes of a piece.
    private static let piece = 65_536

    /// As a body that can be sent again. Throws where it cannot be read.
    func body() throws(CountersignError) -> ReplayableBody { ReplayableBody(.bytes(try size())) { self } }

    /// In bytes. Throws where it cannot be read.
    func size() throws(CountersignError) -> Int {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { if file >= 0 { close(file) } }
        var status = stat()
        guard file >= 0, fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .misuse("file `\(path)`: cannot be read, or is no file")
        }
        return Int(status.st_size)
    }

    func makeAsyncIterator() -> Iterator { Iterator(path) }

    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    final class Iterator: AsyncIteratorProtocol {
        private let path: String
        private var file: Int32 = -1

        init(_ path: String) { self.path = path }

        deinit { if file >= 0 { close(file) } }

        /// A disk's thread would be one more to wait for; a read of a file is over before it could be had.
        func next() async throws -> [UInt8]? {
            if file < 0 { file = open(path, O_RDONLY | O_CLOEXEC) }
            guard file >= 0 else { throw problem("cannot open") }
            while true {
                var failure: Int32 = 0
                let bytes = [UInt8](unsafeUninitializedCapacity: FileBody.piece) { room, count in
                    let got = read(file, room.baseAddress, FileBody.piece)
                    failure = got < 0 ? errno : 0
                    count = Swift.max(0, got)
                }
                if failure == EINTR { continue }
                guard failure == 0 else { throw problem("cannot read") }
                return bytes.isEmpty ? nil : bytes
            }
        }

        private func problem(_ what: String) -> Problem {
            Problem(description: "file `\(path)`: \(what): \(String(cString: strerror(errno)))")
        }
    }
}
