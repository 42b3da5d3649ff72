import CountersignClient
import CountersignTransport

extension Client {
    /// Takes up a signed set of pins, as `countersign pins sign` makes it, and cuts every connection that was made under the old one.
    /// Returns its version. On an error what was in force stays so. Source: docs/protocol.md, "Pin manifests".
    @discardableResult
    public func updatePins(_ manifest: [UInt8]) throws(ClientError) -> Int {
        let now: Int64
        do throws(ClientProblem) {
            now = try core.surroundings.now()
        } catch {
            throw ClientError(error)
        }
        let version = try core.trust.takeUp(manifest, at: now)
        core.events.tell(.pinsReplaced(version: version))
        return version
    }
}
