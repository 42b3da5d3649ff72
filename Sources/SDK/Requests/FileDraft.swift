import CountersignSeal
import CountersignWire

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A file beside the one that is wanted, which takes its name once it is whole.
final class FileDraft {
    private let path: String
    private let draft: String
    private var file: Int32

    init(_ path: String) throws(CountersignError) {
        self.path = path
        draft = "\(path).\(Hex.encode(SystemRandom().bytes(8).span))"
        file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw problem("cannot be written") }
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
            guard count > 0 else { throw problem("cannot be written") }
            rest = rest.dropFirst(count)
        }
    }

    /// Durable, and in its place.
    func finish() throws(CountersignError) {
        guard fsync(file) == 0, rename(draft, path) == 0 else { throw problem("cannot be put in its place") }
        close(file)
        file = -1
    }

    private func problem(_ what: String) -> CountersignError {
        .machine("file `\(path)`: \(what): \(String(cString: strerror(errno)))")
    }
}

extension FileDraft {
    /// An answer's body, in a file of that name once it is whole. Of what is no success nothing is written,
    /// and its body is thrown, of `errorUpTo` bytes at most.
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
