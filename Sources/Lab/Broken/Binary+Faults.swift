#if SABOTAGE
    extension Binary {
        /// The faults that `serve` can be told to have.
        func faults() async throws(StageFault) -> [String] {
            let folder = try Files.makeTemporaryFolder("countersign-lab")
            defer { Files.removeFolder(folder) }
            let listed = try await run(["serve", "--sabotage", "list"], data: "\(folder)/data")
            // A head, and then a line for each, which begins with its name.
            return String(decoding: listed, as: UTF8.self).split(separator: "\n").dropFirst()
                .compactMap { $0.split(separator: " ").first.map(String.init) }
        }
    }
#endif
