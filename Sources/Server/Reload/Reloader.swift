import CountersignGate
import CountersignThreads
import CountersignWire

/// Reads the settings of a running server again, and applies all of those that need no restart, or none.
/// Source: docs/decisions/0079-configuration.md.
///
/// Safe to share: one reload runs at a time, on the thread that asks for it; another waits, unless a restart
/// is under way.
final class Reloader: Sendable {
    private let sources: Configuration.Sources
    private let running: RunningConfiguration
    private let service: Service
    private let handOver: HandoverState
    private let log: EventLog?
    /// Allows one reload at a time. Locked for writing alone, and no ``Locked`` with the parts that a reload
    /// needs: they are shared with the rest of the server, and a reload waits for files and a resolver.
    private let reloadLock = ReadWriteLock()

    /// `sources` are those that the server started with; their file is read again. Their environment has the
    /// master key's variables, too.
    init(
        sources: Configuration.Sources, running: RunningConfiguration, service: Service,
        handOver: HandoverState, log: EventLog?
    ) {
        self.sources = sources
        self.running = running
        self.service = service
        self.handOver = handOver
        self.log = log
    }

    /// Blocks until every loop has the new settings, or for some seconds. Must not be called on a loop.
    func reload() -> ReloadReport {
        // Asked before the lock, too: in a hand-over the thread of the control socket, which watches the
        // successor, must not wait for a reload that resolves names.
        let report =
            handOver.isHandingOver ? Reloader.refusalDuringRestart : reloadLock.write { attempt() }
        if !report.isApplied { reopenLog() }
        // What is refused during a restart says nothing of the settings.
        if report != Reloader.refusalDuringRestart { service.reloads.note(report, at: SystemTime().now) }
        log?.note(subject: "reload", message: report.line)
        return report
    }

    /// Also where the settings are refused: otherwise a file that was renamed would grow, and its name stay
    /// empty, until they are mended.
    private func reopenLog() {
        let settings = running.current
        if let sink = try? EventLog.Sink(settings.log) {
            log?.continueTo(sink, sampling: settings.logSampling)
        }
    }

    private static let refusalDuringRestart = ReloadReport.refused(
        "a restart is under way, and this server's successor reads the settings itself: "
            + "try again once `countersign restart` has returned")

    private func attempt() -> ReloadReport {
        guard !handOver.isHandingOver else { return Reloader.refusalDuringRestart }
        do {
            let old = running.current
            let result = Configuration.read(from: try sources.readingFileAgain())
            let errors = result.check(environment: sources.environment, running: old)
                .filter { $0.severity == .error }
            guard errors.isEmpty else { return .refused(errors) }
            let merged = old.reloaded(from: result.configuration)
            let changes = old.changes(to: result.configuration)
            let problems = Reloader.contradictions(
                of: merged, workers: service.workerCount, after: changes, origins: result.origins)
            guard problems.isEmpty else { return .refused(problems) }
            let late = service.apply(try service.prepareReload(to: merged))
            return ReloadReport(
                changes: changes, files: merged.filesReadAgain, lateLoops: late, problems: [])
        } catch {
            return .refused(error.message)
        }
    }

    /// What waits for a restart must not make the rest contradict itself.
    static func contradictions(
        of merged: Configuration, workers: Int, after changes: [SettingChange],
        origins: [String: ConfigurationProblem.Origin]
    ) -> [ConfigurationProblem] {
        merged.contradictions(workers: workers).map { found in
            let waiting = changes.filter { $0.needsRestart && [found.name, found.other].contains($0.name) }
            let reasons = waiting.map { "; --\($0.name) keeps its value until a restart" }
            return ConfigurationProblem(
                message: found.message + reasons.joined(), origin: origins[found.name], setting: found.name)
        }
    }
}

extension Configuration {
    /// The files that a reload reads or opens again whether or not a setting changed, by setting.
    fileprivate var filesReadAgain: [String] {
        var paths: [String] = []
        if let files = tlsFiles { paths += [files.certificate, files.key] }
        if let authorities = upstreamSettings.authorities { paths.append(authorities) }
        if let identity = upstreamSettings.identity { paths += [identity.certificate, identity.key] }
        if case .file(let path) = log { paths.append(path) }
        return paths
    }
}

/// How the last reload ended. Safe to share: the thread that reloads writes it, and the admin listener reads
/// it.
final class ReloadHistory: Sendable {
    /// A reload that has applied nothing.
    struct Failure: Sendable, Equatable {
        /// In whole Unix seconds.
        var time: Int64
        /// The problems, as the log has them.
        var line: String
    }

    /// More of the problems stands in the log.
    private static let mostScalars = 1_000

    private let value = Locked<Failure?>(nil)

    /// Nil if the last reload was applied, and before the first one.
    var failure: Failure? { value.with { $0 } }

    /// `time` is in whole Unix seconds.
    func note(_ report: ReloadReport, at time: Int64) {
        let line = String(
            String.UnicodeScalarView(report.line.unicodeScalars.prefix(ReloadHistory.mostScalars)))
        value.with { $0 = report.isApplied ? nil : Failure(time: time, line: line) }
    }
}
