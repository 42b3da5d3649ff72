import CountersignAuthority
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Fills a deployment with sessions whose keys a load generator knows.
extension SessionBench {
    /// What a load generator needs to send requests in the name of the sessions.
    package struct Fill: Sendable {
        package var release: KeyID
        /// Signs the requests of every session, since all have the same root; 32 bytes.
        package var requestKey: Secret
        /// The sessions' key ids before any refresh, in the order in which the sessions were added.
        package var keyIDs: [String]
    }

    /// Adds `count` accounts with a session each. `progress` receives a description of each stage.
    package func fill(sessions count: Int, progress: (String) -> Void) throws(OperationalError) -> Fill {
        let ids = try fill(count, progress: progress)
        return Fill(
            release: release.id, requestKey: device.root.requestKey,
            keyIDs: ids.map { SessionToken(id: $0, epoch: 0).description })
    }
}
