import CountersignSchemes

/// What an app's team has decided about its callers. Values only: how a policy is spelled (`--set K=V`) is
/// `Authority/PolicyText`, where each setting is described once.
package struct Policy: Sendable, Equatable {
    /// Which schemes may speak. Legacy ones are never on unless named here.
    package var schemes: Set<SchemeName> = [.messageSignatures]
    /// Seconds either side of now within which a signature is fresh, for schemes that `windows` does not name.
    package var window: Int?
    package var windows: [SchemeName: Int] = [:]
    /// Seconds east of UTC of the wall clock that form-md5 clients send.
    package var timezoneOffset = 0
    /// Whether a refusal tells the caller its exact reason. For development: it helps an attacker a little, too.
    package var detail = RefusalDetail.coarse
    /// Fields, beyond the built-in ones, that may be forwarded although no signature covers them. Lower-case.
    package var forwardedFields: Set<String> = []

    package enum RefusalDetail: Sendable, Equatable { case coarse, exact }

    package init() {}

    /// Seconds either side of now for that scheme: the app's own, else the scheme's.
    package func window(for scheme: SchemeName) -> Int {
        windows[scheme] ?? window ?? scheme.defaultWindow
    }
}
