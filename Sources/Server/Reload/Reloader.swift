import CountersignThreads
import CountersignWire

/// Reads the settings of a running server again, and applies all of those that need no restart, or none.
/// Source: docs/decisions/0079-configuration.md.
///
/// Safe to share: one reload runs at a time, on the thread that asks for it; another waits.
final class Reloader: Sendable {
    private let sources: Configuration.Sources
    private let running: RunningConfiguration
    private let service: Service
    private let handOver: HandoverState
    private let log: EventLog?
    private let turn = ReadWriteLock()

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

    /// Blocks until every loop has the new settings. Must not be called on a loop.
    func reload() -> ReloadReport {
        let report = turn.write { attempt() }
        log?.note(subject: "reload", message: report.line)
        return report
    }

    private func attempt() -> ReloadReport {
        guard !handOver.isHandingOver else {
            return .refused(
                "a restart is under way, and this server's successor reads the settings itself: "
                    + "try again once `countersign restart` has returned")
        }
        do {
            let reading = Configuration.read(from: try sources.readingFileAgain())
            let errors = reading.check(environment: sources.environment).filter { $0.severity == .error }
            guard errors.isEmpty else { return .refused(errors) }
            let old = running.current
            let merged = old.reloaded(from: reading.configuration)
            // What waits for a restart must not make the rest contradict itself.
            if merged.decide != nil, merged.trustedProxies.isEmpty {
                return .refused(
                    "--trusted-proxies: --decide is on until a restart: expected the proxies that ask")
            }
            let changes = old.changes(to: reading.configuration)
            service.apply(try service.prepareReload(to: merged))
            return ReloadReport(changes: changes, files: merged.filesReadAgain, problems: [])
        } catch {
            return .refused(error.message)
        }
    }
}

extension Configuration {
    /// The files that a reload reads or opens again whether or not a setting changed, by setting.
    fileprivate var filesReadAgain: [String] {
        var paths: [String] = []
        switch tls {
        case .off: break
        case .automatic: paths += ["\(data)/tls/certificate.pem", "\(data)/tls/key.pem"]
        case .files(let certificate, let key): paths += [certificate, key]
        }
        if let authorities = upstreamSettings.authorities { paths.append(authorities) }
        if let identity = upstreamSettings.identity { paths += [identity.certificate, identity.key] }
        if case .file(let path) = log { paths.append(path) }
        return paths
    }
}
