// Former public names, too general for an app that imports this module. The next version removes them.

/// The former name of ``Trust/Policy``.
@available(*, deprecated, renamed: "Trust.Policy")
public typealias Policy = Trust.Policy

/// The former name of ``Trust/Rule``.
@available(*, deprecated, renamed: "Trust.Rule")
public typealias Rule = Trust.Rule

/// The former name of ``Trust/Host``.
@available(*, deprecated, renamed: "Trust.Host")
public typealias Host = Trust.Host

/// The former name of ``Trust/HostPattern``.
@available(*, deprecated, renamed: "Trust.HostPattern")
public typealias HostPattern = Trust.HostPattern

/// The former name of ``Trust/Evidence``.
@available(*, deprecated, renamed: "Trust.Evidence")
public typealias Evidence = Trust.Evidence

/// The former name of ``Trust/Anchors``.
@available(*, deprecated, renamed: "Trust.Anchors")
public typealias Anchors = Trust.Anchors

/// The former name of ``Trust/PathValidation``.
@available(*, deprecated, renamed: "Trust.PathValidation")
public typealias PathValidation = Trust.PathValidation

/// The former name of ``Trust/PathError``.
@available(*, deprecated, renamed: "Trust.PathError")
public typealias PathError = Trust.PathError

/// The former name of ``Trust/Certificate``.
@available(*, deprecated, renamed: "Trust.Certificate")
public typealias Certificate = Trust.Certificate

/// The former name of ``Trust/Pin``.
@available(*, deprecated, renamed: "Trust.Pin")
public typealias Pin = Trust.Pin

/// The former name of ``Trust/Verdict``.
@available(*, deprecated, renamed: "Trust.Verdict")
public typealias Verdict = Trust.Verdict

/// The former name of ``TrustError``.
@available(*, deprecated, renamed: "TrustError")
public typealias TrustProblem = TrustError

/// The former name of ``ManifestError``.
@available(*, deprecated, renamed: "ManifestError")
public typealias ManifestProblem = ManifestError

extension Trust {
    /// The former name of ``PathError``.
    @available(*, deprecated, renamed: "PathError")
    public typealias PathProblem = PathError
}
