import CountersignTestServer
import Glibc

/// The `countersign` binary, run as an operator runs it.
package struct CountersignBinary: Sendable {
    /// A file.
    package let path: String

    package init(_ path: String) { self.path = path }

    /// The file of that name beside this process's program.
    package init(besideThisProgram name: String = "countersign") throws(LabError) {
        guard let folder = CountersignBinary.folder else {
            throw LabError("cannot tell which file this process runs")
        }
        path = folder + name
    }

    /// Runs one command on a data folder and returns its output. Throws its error message if it fails.
    @discardableResult
    package func run(
        _ words: [String], typing input: String = "", data: String
    ) async throws(LabError) -> [UInt8] {
        try await DedicatedThread.run { () throws(LabError) in
            try runBlocking(words, typing: input, data: data)
        }
    }

    /// The same, blocking.
    @discardableResult
    package func runBlocking(
        _ words: [String], typing input: String = "", data: String
    ) throws(LabError) -> [UInt8] {
        let errors = "\(data).complaints"
        let process = try ChildProcess(
            [path] + words + ["--data", data], input: Array(input.utf8),
            environment: CountersignBinary.environment,
            errors: errors)
        let printed = process.rest(within: 60)
        let status = process.wait()
        guard status == 0 else {
            let said = (try? Files.read(errors)).map { String(decoding: $0.suffix(400), as: UTF8.self) }
            // The other arguments may be secrets.
            throw LabError(
                "countersign \(words.prefix(2).joined(separator: " ")): exit \(status): \(said ?? "")")
        }
        return printed
    }

    /// Starts a long-running command.
    package func start(_ words: [String], errors: String) throws(LabError) -> ChildProcess {
        try ChildProcess([path] + words, environment: CountersignBinary.environment, errors: errors)
    }

    /// This process's environment without Countersign settings.
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

    private static var folder: String? {
        var bytes = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &bytes, bytes.count)
        guard count > 0 else { return nil }
        let own = String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return own.lastIndex(of: "/").map { String(own[...$0]) }
    }
}

/// Runs blocking work outside Swift's thread pool.
package enum DedicatedThread {
    /// Runs `work` on a new thread; returns its result or throws its error.
    package static func run<Value: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withCheckedContinuation {
            (waiting: CheckedContinuation<Result<Value, Failure>, Never>) in
            TestThread.start {
                let result = Result { () throws(Failure) in try work() }
                waiting.resume(returning: result)
            }
        }
        return try result.get()
    }
}
