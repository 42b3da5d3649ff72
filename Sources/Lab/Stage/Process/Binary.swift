import Glibc

/// The `countersign` binary, run as an operator runs it.
package struct Binary: Sendable {
    /// A file.
    package let path: String

    /// This file, or else the one that this process runs.
    package init(_ path: String? = nil) throws(StageFault) {
        guard let path = path ?? Binary.own else { throw StageFault("cannot tell which file this process runs") }
        self.path = path
    }

    /// Runs one command on a data folder to its end: what it prints. Throws where it does not succeed, with what it complained of.
    @discardableResult
    package func run(
        _ words: [String], typing input: String = "", data: String
    ) async throws(StageFault) -> [UInt8] {
        try await Blocking.run { () throws(StageFault) in try runBlocking(words, typing: input, data: data) }
    }

    /// The same. Blocks its thread.
    @discardableResult
    package func runBlocking(
        _ words: [String], typing input: String = "", data: String
    ) throws(StageFault) -> [UInt8] {
        let errors = "\(data).complaints"
        let process = try ChildProcess(
            [path] + words + ["--data", data], input: Array(input.utf8), environment: Binary.environment,
            errors: errors)
        let printed = process.rest(within: 60)
        let status = process.wait()
        guard status == 0 else {
            let said = (try? Files.read(errors)).map { String(decoding: $0.suffix(400), as: UTF8.self) }
            // The rest of the words may be secrets.
            throw StageFault("countersign \(words.prefix(2).joined(separator: " ")): exit \(status): \(said ?? "")")
        }
        return printed
    }

    /// Starts one that goes on.
    package func start(_ words: [String], errors: String) throws(StageFault) -> ChildProcess {
        try ChildProcess([path] + words, environment: Binary.environment, errors: errors)
    }

    /// This process's own, but for settings of some deployment that it may have been given.
    package static var environment: [String: String] {
        var result: [String: String] = [:]
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            if let equals = text.firstIndex(of: "="), !text.hasPrefix("COUNTERSIGN_") {
                result[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            next += 1
        }
        return result
    }

    private static var own: String? {
        var bytes = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &bytes, bytes.count)
        guard count > 0 else { return nil }
        return String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
