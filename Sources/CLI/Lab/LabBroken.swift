import CountersignLab
import CountersignWire

/// `countersign lab --broken`: whether the attacks find the faults that a debug build can be told to have.
enum LabBroken {
    static func run(_ run: Invocation) throws(Fault) -> ExitStatus {
        for option in ["scheme", "html", "save", "expect", "with"] where run.arguments.has(option) {
            throw Fault(.usage, "--\(option) says nothing with --broken: each fault has its row and its attack")
        }
        #if SABOTAGE
            let wanted = Set(try LabRequest.selection(run.arguments).attacks.map(\.name))
            let lab = BrokenRun(
                settings: try LabRequest.settings(run), servers: BrokenServer.all.filter { wanted.contains($0.attack) })
            guard !lab.servers.isEmpty else {
                throw Fault(.usage, "--attack: none of these attacks is what a broken server is to be found by")
            }
            Interruption.arm()
            defer { Interruption.endWhatIsLeft() }
            let line = LabProgressLine(run.console)
            let findings = try Waiting.run { () async throws(Fault) in
                do throws(StageFault) {
                    return try await lab.run { line.show($0) }
                } catch {
                    throw Fault(.failed, "lab --broken: \(error)")
                }
            }
            line.end()
            try run.print(findings.json) { findings.text }
            return findings.allSatisfy { $0.verdict == .caught } ? .success : .failed
        #else
            throw Fault(
                .failed,
                "lab --broken: this build has no faults to switch on; a debug build has (`script/lab --broken`)")
        #endif
    }
}
