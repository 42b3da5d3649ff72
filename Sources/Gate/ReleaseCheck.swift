import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Checks whether the caller's version of the app is still served.
package struct ReleaseCheck: Sendable {
    /// Whether a request only reads or changes something, which decides for a read-only version.
    package enum Effect: Sendable { case reads, changes }

    package init() {}

    /// Returns the notice to send to an admitted caller, or nil for none; refuses a version that is no longer
    /// served. `session` is the one that the request names; `network` returns the client's network address.
    package func check(
        _ release: AppRelease, in session: Session?, effect: Effect, from network: () -> [UInt8],
        at now: Int64
    ) throws(Refusal) -> UpdateNotice? {
        guard let retirement = release.retirement else { return nil }
        switch retirement.stage(
            at: now, bucket: { RolloutBucket.bucket(for: release, in: session, from: network) })
        {
        case .live: return nil
        case .warn: return UpdateNotice(stage: .warn, retirement: retirement)
        case .readOnly where effect == .reads: return UpdateNotice(stage: .readOnly, retirement: retirement)
        case .readOnly:
            let since = retirement.readOnlyAt ?? now
            throw Refusal(
                .updateRequired,
                detail: "release \(release.id) may only read since \(CivilTime.rfc3339Text(since))",
                link: retirement.updateURL, decidedAt: max(since, retirement.lastStep(at: now)))
        case .retired:
            let at = CivilTime.rfc3339Text(retirement.at)
            throw Refusal(
                .updateRequired, detail: "release \(release.id) was retired at \(at)",
                link: retirement.updateURL, decidedAt: max(retirement.at, retirement.lastStep(at: now)))
        }
    }
}

/// How a release goes out of service: in stages, and for a share of the devices at a time. Source:
/// docs/protocol.md, "Retiring a version".
extension AppRelease {
    package struct Retirement: Sendable, Equatable {
        /// From this time on, callers are refused and sent to `updateURL`. In whole Unix seconds, as are the
        /// other times.
        package var at: Int64
        package var updateURL: String
        /// From this time on, responses announce the retirement; nil for no warning.
        package var warnAt: Int64?
        /// From this time on, callers may only read; nil if there is no read-only stage.
        package var readOnlyAt: Int64?
        /// The shares of devices that the stages reach, in ascending order of their start; empty for all
        /// devices.
        package var rollout: [RolloutStep] = []

        package init(at: Int64, updateURL: String) {
            self.at = at
            self.updateURL = updateURL
        }
    }

    /// From `since` (whole Unix seconds; 0 for always) the stages reach `percent` of the devices, 0 to 100.
    package struct RolloutStep: Sendable, Equatable {
        package var since: Int64
        package var percent: Int

        package init(since: Int64, percent: Int) {
            self.since = since
            self.percent = percent
        }
    }

    /// The stage of a release for the devices that its retirement reaches.
    package enum Stage: String, Sendable, CaseIterable {
        case live
        /// Served; answers bear `Countersign-Update`.
        case warn
        /// The same, but requests that change something are refused.
        case readOnly = "read-only"
        case retired
    }
}

extension AppRelease.Retirement {
    /// The stage at `now` for the devices that the retirement reaches.
    package func stage(at now: Int64) -> AppRelease.Stage {
        if at <= now { return .retired }
        if let readOnlyAt, readOnlyAt <= now { return .readOnly }
        if let warnAt, warnAt <= now { return .warn }
        return .live
    }

    /// The percentage of devices that the retirement reaches at `now`.
    package func percent(at now: Int64) -> Int {
        rollout.isEmpty ? 100 : rollout.last { $0.since <= now }?.percent ?? 0
    }

    /// When the rollout's latest step that has begun by `now` began; 0 without steps.
    func lastStep(at now: Int64) -> Int64 { rollout.last { $0.since <= now }?.since ?? 0 }

    /// The stage at `now` for a device with that bucket, 0 to 99. `bucket` is called only if the retirement
    /// reaches some devices and not others.
    package func stage(at now: Int64, bucket: () -> Int) -> AppRelease.Stage {
        let stage = stage(at: now)
        guard stage != .live else { return .live }
        let percent = percent(at: now)
        return percent >= 100 || (percent > 0 && bucket() < percent) ? stage : .live
    }
}

/// A stable number from 0 to 99 for a device and a release. It stays the same for one release, so that a
/// refused device is not admitted again; it differs between releases, so that the first devices are not
/// always the same.
enum RolloutBucket {
    /// 0 to 99. Derived from the session, or from the network for a caller without a session.
    static func bucket(for release: AppRelease, in session: Session?, from network: () -> [UInt8]) -> Int {
        let name = session?.id.description ?? Hex.encode(network().span)
        return bucket(for: name, release: release.id)
    }

    private static func bucket(for name: String, release: KeyID) -> Int {
        // A key id is visible ASCII, so the space ends it.
        let text = Array("countersign/1 rollout \(release) \(name)".utf8)
        let digest = SHA256.digest(text.span)
        var number: UInt64 = 0
        for index in 0..<8 { number = number << 8 | UInt64(digest[index]) }
        return Int(number % 100)
    }
}

/// The notice to callers of a version that will be retired: when, and where to find the next version.
///
/// A class, because most callers get none, and each copy of a ``Caller`` has a reference to it.
package final class UpdateNotice: Sendable, Equatable {
    /// Warn or read-only.
    package let stage: AppRelease.Stage
    /// When the release retires, in whole Unix seconds.
    package let at: Int64
    package let link: String

    init(stage: AppRelease.Stage, retirement: AppRelease.Retirement) {
        self.stage = stage
        at = retirement.at
        link = retirement.updateURL
    }

    package static func == (left: UpdateNotice, right: UpdateNotice) -> Bool {
        left.stage == right.stage && left.at == right.at && left.link == right.link
    }

    /// The response field that carries the notice.
    package static let fieldName = "Countersign-Update"

    /// `stage=warn, at=1769817600, link="https://…"`: a dictionary of RFC 8941 §3.2.
    package var fieldValue: String {
        "stage=\(stage.rawValue), at=\(at), link=\"\(UpdateNotice.quotable(link))\""
    }

    /// Percent-encodes what a string of RFC 8941 §3.3.3 cannot contain.
    private static func quotable(_ link: String) -> String {
        var text: [UInt8] = []
        for byte in link.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), ...0x20, 0x7F...:
                PercentEncoding.encode([byte].span, into: &text)
            default: text.append(byte)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
