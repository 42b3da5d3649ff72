import CountersignSchemes
import CountersignWire

/// The workspaces in which a client signs its requests. A workspace that has signed a request knows the next
/// one's list of components and keeps its memory. There are as many as were in use at once.
final class SigningWorkspaces: Sendable {
    /// A workspace behind a reference. Used by one request at a time: it is out of `spare` meanwhile.
    private final class Place: @unchecked Sendable {
        var workspace = Workspace()
    }

    private let spare = Locked<[Place]>([])

    /// Runs `body` with a workspace that no other request uses meanwhile. What it wrote is overwritten: a
    /// string to sign may contain a bearer token.
    func with<Result, Failure: Error>(
        _ body: (inout Workspace) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let place = spare.with { $0.popLast() } ?? Place()
        defer {
            place.workspace.eraseText()
            spare.with { $0.append(place) }
        }
        return try body(&place.workspace)
    }
}
