import CountersignSeal
import CountersignTransport
import CountersignWire

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

    /// A body that can be sent again. Throws if the file cannot be read.
    func body() throws(CountersignError) -> ReplayableBody { ReplayableBody(.bytes(try size())) { self } }

    /// In bytes. Throws if the file cannot be read.
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

    final class Iterator: AsyncIteratorProtocol {
        private let path: String
        private var file: Int32 = -1

        init(_ path: String) { self.path = path }

        deinit { if file >= 0 { close(file) } }

        /// Reads on the caller's thread: passing the read to another thread would take longer than the read.
        func next() async throws(CountersignError) -> [UInt8]? {
            if file < 0 { file = open(path, O_RDONLY | O_CLOEXEC) }
            guard file >= 0 else { throw failure("cannot open") }
            while true {
                var code: Int32 = 0
                let bytes = [UInt8](unsafeUninitializedCapacity: FileBody.piece) { room, count in
                    let got = read(file, room.baseAddress, FileBody.piece)
                    code = got < 0 ? errno : 0
                    count = Swift.max(0, got)
                }
                if code == EINTR { continue }
                guard code == 0 else { throw failure("cannot read") }
                return bytes.isEmpty ? nil : bytes
            }
        }

        private func failure(_ what: String) -> CountersignError {
            .machine("file `\(path)`: \(what): \(String(cString: strerror(errno)))")
        }
    }
}

/// A file beside the target, which takes the target's name once it is complete.
final class FileDraft {
    private let path: String
    private let draft: String
    private var file: Int32

    init(_ path: String) throws(CountersignError) {
        self.path = path
        draft = "\(path).\(Hex.encode(SystemRandom().bytes(8).span))"
        file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure("cannot be written") }
    }

    deinit {
        guard file >= 0 else { return }
        close(file)
        unlink(draft)
    }

    func append(_ piece: [UInt8]) throws(CountersignError) {
        var rest = piece[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("cannot be written") }
            rest = rest.dropFirst(count)
        }
    }

    /// Makes the file durable and moves it to its place.
    func finish() throws(CountersignError) {
        guard fsync(file) == 0, rename(draft, path) == 0 else {
            throw failure("cannot be put in its place")
        }
        close(file)
        file = -1
    }

    private func failure(_ what: String) -> CountersignError {
        .machine("file `\(path)`: \(what): \(String(cString: strerror(errno)))")
    }
}

extension FileDraft {
    /// Writes a response's body to a file of that name, which appears once it is complete. For a response
    /// that is not a success writes nothing and throws with the body, of at most `errorUpTo` bytes.
    static func download(
        _ answer: APIAnswer, to path: String, errorUpTo limit: Int
    ) async throws(CountersignError) -> APIResponse {
        guard answer.response.isSuccess else {
            throw .status(answer.response, body: try await answer.body.collect(upTo: limit))
        }
        let file = try FileDraft(path)
        for try await piece in answer.body { try file.append(piece) }
        try file.finish()
        return answer.response
    }
}
