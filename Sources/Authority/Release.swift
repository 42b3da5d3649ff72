import CountersignGate
import CountersignSchemes
import CountersignWire

/// One version of an app on one platform, and the key that its clients sign with.
package struct Release: Sendable, Equatable {
    package var id: KeyID
    package var app: AppName
    package var platform: Platform
    package var version: Version
    package var scheme: SchemeName
    /// The key's bytes, sealed under the master key.
    package var sealedSecret: [UInt8]
    /// The sealed next key; nil while there is none. While there is one, both keys verify.
    package var sealedNextSecret: [UInt8]?
    /// Whole Unix seconds.
    package var created: Int64
    package var retirement: AppRelease.Retirement?
    /// The settings of this release alone, by the policy key's name; all others are the app's.
    package var settings: [String: String] = [:]

    package init(
        id: KeyID, app: AppName, platform: Platform, version: Version, scheme: SchemeName,
        sealedSecret: [UInt8],
        created: Int64, retirement: AppRelease.Retirement? = nil
    ) {
        self.id = id
        self.app = app
        self.platform = platform
        self.version = version
        self.scheme = scheme
        self.sealedSecret = sealedSecret
        self.created = created
        self.retirement = retirement
    }
}

/// `ios`, `android`, …: 1 to 32 letters, digits, `-` and `.`, stored in lower case because clients differ
/// in case.
package struct Platform: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init?(_ text: String) {
        guard let name = AppName(text.lowercased()), text.utf8.count <= 32 else { return nil }
        description = name.description
    }
}

/// An app's version as its clients write it: 1 to 32 visible ASCII characters.
package struct Version: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init?(_ text: String) {
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return nil
        }
        description = text
    }
}

/// Retirement of a release, and its reversal.
extension Deployment {
    /// Replaces the release's retirement, if it has one. Its times must be in order, and its shares must
    /// not decrease, so that a device that was refused is not accepted again as time passes.
    package func retire(_ id: KeyID, with retirement: AppRelease.Retirement) throws(OperationalError) {
        try Deployment.check(retirement)
        try requireClock(for: "retirement of \(id)")
        let audit = auditDraft(
            for: .releaseRetire, on: .release(id, of: try release(id).app), details: retirement.auditDetails)
        guard try store.retire(id, with: retirement, recording: audit) == .yes else {
            throw OperationalError(.missing, message: "release \(id): there is none")
        }
        generation.advance()
    }

    /// Makes the release live again, at once and for all devices.
    package func undoRetirement(of id: KeyID) throws(OperationalError) {
        let release = try release(id)
        let audit = auditDraft(
            for: .releaseUndo, on: .release(id, of: release.app),
            details: release.retirement?.auditDetails ?? [])
        guard try store.undoRetirement(of: id, recording: audit) == .yes else {
            throw OperationalError(
                .failed, message: "release \(id): it is not retired, and no retirement is planned")
        }
        generation.advance()
    }

    private static func check(_ retirement: AppRelease.Retirement) throws(OperationalError) {
        let moments: [(String, Int64?)] = [
            ("--warn-at", retirement.warnAt), ("--read-only-at", retirement.readOnlyAt),
            ("--at", retirement.at),
        ]
        let given = moments.compactMap { name, time in time.map { (name: name, time: $0) } }
        for (earlier, later) in zip(given, given.dropFirst()) where earlier.time > later.time {
            throw OperationalError(
                .usage,
                message:
                    "\(earlier.name) is after \(later.name); expected warn, read-only, retired in this order")
        }
        let steps = retirement.rollout
        guard steps.allSatisfy({ (0...100).contains($0.percent) }) else {
            throw OperationalError(.usage, message: "--percent: expected whole numbers from 0 to 100")
        }
        for (earlier, later) in zip(steps, steps.dropFirst())
        where earlier.since >= later.since || earlier.percent > later.percent {
            throw OperationalError(
                .usage, message: "--percent: expected later times and no smaller shares from step to step")
        }
    }
}

extension AppRelease.Retirement {
    /// The retirement's settings, for the audit log and for display.
    package var auditDetails: [(name: String, value: JSONValue)] {
        var told: [(name: String, value: JSONValue)] = [
            ("at", .integer(at)), ("update_url", .string(updateURL)),
        ]
        if let warnAt { told.append(("warn_at", .integer(warnAt))) }
        if let readOnlyAt { told.append(("read_only_at", .integer(readOnlyAt))) }
        if !rollout.isEmpty {
            let steps = rollout.map { step -> JSONValue in
                ["since": .integer(step.since), "percent": .integer(Int64(step.percent))]
            }
            told.append(("rollout", .array(steps)))
        }
        return told
    }
}
