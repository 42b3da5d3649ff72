import CountersignLab
import CountersignWire
import Glibc

/// What all cases of a run share.
final class ConformanceStage: Sendable {
    let certificates: Certificates
    let manifests: ManifestSigner
    let front: Front
    let deployment: TestDeployment

    init(_ binary: Binary, folder: String) throws(StageFault) {
        certificates = try Certificates()
        manifests = try ManifestSigner()
        front = try Front(showing: certificates.current)
        deployment = try TestDeployment(
            binary, folder: folder, authority: "\(Certificates.host):\(front.port)")
        front.lead(to: deployment.port)
    }

    func stop() {
        front.stop()
        deployment.stop()
    }
}

/// A run of cases against a port of the client: the real authority and gateway, behind a front that loses,
/// repeats and alters answers. Source: docs/conformance.md.
package struct Conformance: Sendable {
    /// The `countersign` binary, which is the gateway.
    private let binary: Binary
    /// The driver's program and its arguments.
    private let command: [String]
    private let cases: [ConformanceCase]

    package init(_ binary: Binary, command: [String], cases: [ConformanceCase]) {
        (self.binary, self.command, self.cases) = (binary, command, cases)
    }

    /// What comes of cases.
    package enum Persistence: Sendable {
        /// Ends with the first that fails.
        case untilFailure
        case allCases
    }

    /// Carries out one case after the other, and tells of each when it is over. Blocks.
    package func run(
        _ persistence: Persistence, telling: (ConformanceCase, CaseOutcome) -> Void
    ) throws(StageFault) -> ConformanceReport {
        let folder = try Files.makeTemporaryFolder("countersign-conformance")
        defer { Files.removeFolder(folder) }
        let stage = try ConformanceStage(binary, folder: folder)
        defer { stage.stop() }
        var report = ConformanceReport()
        for (number, one) in cases.enumerated() {
            let outcome = try carryOut(one, on: stage, folder: "\(folder)/case-\(number)")
            report.results.append((one, outcome))
            telling(one, outcome)
            if case .failed(let failure) = outcome, failure.kind != .notImplemented,
                persistence == .untilFailure
            {
                break
            }
        }
        report.notRun = cases.count - report.results.count
        return report
    }

    private func carryOut(
        _ one: ConformanceCase, on stage: ConformanceStage, folder: String
    ) throws(StageFault) -> CaseOutcome {
        stage.front.beHonest()
        stage.front.forget()
        let trial = try Trial(stage, command: command, folder: folder)
        do throws(CaseFailure) {
            if let feature = one.feature {
                guard try trial.port().features.contains(feature) else {
                    throw .notImplemented("`\(feature)`")
                }
            }
            try one.carryOut(trial)
            return .passed
        } catch {
            return .failed(error)
        }
    }
}
