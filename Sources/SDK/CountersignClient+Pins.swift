import CountersignClient
import CountersignTransport
import CountersignTrust

extension CountersignClient {
    /// Takes up a signed set of pins, as `countersign pins sign` makes it, and cuts every connection that was made under the old one.
    /// Returns its version. On an error what was in force stays so. Source: docs/protocol.md, "Pin manifests".
    @discardableResult
    public func updatePins(_ manifest: [UInt8]) throws(CountersignError) -> Int {
        // A vault that cannot be read is no reason to go on trusting a key that was lost.
        let now = (try? core.surroundings.now()) ?? core.surroundings.time.now
        let version = try core.trust.takeUp(manifest, at: now)
        core.events.tell(.pinsReplaced(version: version))
        return version
    }

    /// Asks the server for the app's signed set of pins, and takes it up where it is newer. Returns the version that is in force from
    /// now on; nil where the server has none that is newer. Who serves it does not matter: the offline key's signature counts.
    @discardableResult
    public func fetchPins() async throws(CountersignError) -> Int? {
        guard case .signed(let signers) = core.options.pinUpdates else {
            throw .misuse("pins: CountersignOptions.pinUpdates names nobody who may replace them")
        }
        let path = "\(core.options.routes)/pins/\(signers.app)"
        let manifest: [UInt8]
        do throws(TransportError) {
            let answer = try await core.carrier.send(OutgoingRequest("GET", core.base.origin, path))
            guard answer.status == 200 else { return nil }
            manifest = try await answer.body.collect(upTo: SignedManifest.longest)
        } catch {
            throw CountersignError(error)
        }
        do throws(CountersignError) {
            return try updatePins(manifest)
        } catch {
            guard case .manifest(.notNewer) = error else { throw error }
            return nil
        }
    }
}
