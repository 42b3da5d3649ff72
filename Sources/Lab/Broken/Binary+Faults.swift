extension Binary {
    /// The faults that `serve` can be told to have, as it lists them when asked for one that there is none of. Empty for a build for
    /// release, which has none.
    package func faults() async throws(StageFault) -> [String] {
        let folder = try Files.makeTemporaryFolder("countersign-lab")
        defer { Files.removeFolder(folder) }
        let errors = "\(folder)/complaints"
        let process = try start(["serve", "--sabotage", "?", "--data", folder], errors: errors)
        let status = await Blocking.run { process.wait() }
        let said = String(decoding: try Files.read(errors), as: UTF8.self)
        guard status == 2 else { throw StageFault("countersign serve: exit \(status): \(said)") }
        guard let list = said.split(separator: "expected one of ").dropFirst().first else { return [] }
        return list.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init)
    }
}
