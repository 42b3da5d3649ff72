import CountersignLab
import CountersignWire

/// `lab --broken`: our own server with one fault after the other, each of which an attack has to find. An attack that never succeeds may be
/// one that cannot.
enum LabBroken {
    static func run(_ run: Invocation) throws(Fault) -> ExitStatus {
        for option in ["scheme", "attack", "html", "save", "expect", "with"] where run.arguments.has(option) {
            throw Fault(.usage, "--\(option) says nothing with --broken: each fault has its row and its attack")
        }
        #if SABOTAGE
            let settings = try LabRequest.settings(run)
            let line = LabProgressLine(run.console)
            Interruption.arm()
            let findings = try Waiting.run { () async throws(Fault) in
                do throws(StageFault) {
                    return try await BrokenRun(settings: settings).run { line.show($0) }
                } catch {
                    throw Fault(.failed, "lab --broken: \(error)")
                }
            }
            line.end()
            try run.print(findings.json) { findings.text }
            return findings.allSatisfy { $0.verdict == .caught } ? .success : .failed
        #else
            throw Fault(.usage, "--broken: this is a release build, and only debug builds can be broken on purpose")
        #endif
    }
}
