import CountersignLab
import CountersignWire
import Glibc

/// What all cases of a run share.
final class ConformanceEnvironment: Sendable {
    let certificates: TestCertificates
    let manifests: ManifestSigner
    let front: InterceptionProxy
    let deployment: TestDeployment

    init(_ binary: CountersignBinary, folder: String) throws(LabError) {
        certificates = try TestCertificates()
        manifests = try ManifestSigner()
        front = try InterceptionProxy(showing: certificates.current)
        deployment = try TestDeployment(
            binary, folder: folder, authority: "\(TestCertificates.host):\(front.port)")
        front.setGateway(port: deployment.port)
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
    private let binary: CountersignBinary
    /// The driver's program and its arguments.
    private let command: [String]
    private let cases: [ConformanceCase]

    package init(_ binary: CountersignBinary, command: [String], cases: [ConformanceCase]) {
        (self.binary, self.command, self.cases) = (binary, command, cases)
    }

    /// What comes of cases.
    package enum FailurePolicy: Sendable {
        /// Ends with the first that fails.
        case untilFailure
        case allCases
    }

    /// Carries out one case after the other, and tells of each when it is over. Blocks.
    package func run(
        _ persistence: FailurePolicy, telling: (ConformanceCase, CaseOutcome) -> Void
    ) throws(LabError) -> ConformanceReport {
        let folder = try Files.makeTemporaryFolder("countersign-conformance")
        defer { Files.removeFolder(folder) }
        let stage = try ConformanceEnvironment(binary, folder: folder)
        defer { stage.stop() }
        var report = ConformanceReport()
        for (number, one) in cases.enumerated() {
            let outcome = try run(one, in: stage, folder: "\(folder)/case-\(number)")
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

    private func run(
        _ one: ConformanceCase, in stage: ConformanceEnvironment, folder: String
    ) throws(LabError) -> CaseOutcome {
        stage.front.removeRules()
        stage.front.clearExchanges()
        let trial = try Trial(stage, command: command, folder: folder)
        do throws(ConformanceError) {
            if let feature = one.feature {
                guard try trial.port().features.contains(feature) else {
                    throw .notImplemented("`\(feature)`")
                }
            }
            try one.body(trial)
            return .passed
        } catch {
            return .failed(error)
        }
    }
}
