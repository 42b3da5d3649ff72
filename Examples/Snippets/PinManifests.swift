// Replaces pins while the app runs, by manifests signed with an offline key.
import CountersignTransport
import CountersignTrust

/// The trust in effect: the app's own, until a newer manifest replaces it; stored in a file.
func keeper(_ builtIn: Trust, folder: String, keys: [[UInt8]]) throws -> TrustKeeper {
    try TrustKeeper(
        builtIn: builtIn, version: 3, app: "notes", keys: keys, store: ManifestFile("\(folder)/pins.json"))
}

/// Why the stored manifest is not in effect, for the app's log.
func problem(of keeper: TrustKeeper) -> ManifestError? { keeper.discarded }

/// Applies a manifest from any source: only its signature matters.
func takeUp(_ text: [UInt8], _ keeper: TrustKeeper, _ carrier: any RequestTransport, at time: Int64) {
    do throws(ManifestError) {
        let generation: TrustKeeper.Generation = try keeper.takeUp(text, at: time)
        carrier.replaceTrust(by: generation.trust)
        print(
            "generation \(generation.number), version \(generation.version), until \(generation.validUntil ?? 0)"
        )
    } catch {
        print("\(explain(error)); version \(keeper.current.version) stays in force")
    }
}

func explain(_ problem: ManifestError) -> String {
    switch problem {
    case .malformed(let detail): "not a manifest: \(detail)"
    case .badSignature: "signed by none of the permitted keys"
    case .otherApp(let app): "for \(app)"
    case .notNewer(let version, let inForce): "version \(version), and \(inForce) is in force"
    case .notYetValid(let from): "not before \(from)"
    case .expired(let at): "not after \(at)"
    case .hostNotPinned(let host): "does not pin \(host)"
    case .store(let detail): "cannot be kept: \(detail)"
    }
}

/// Prints the contents of a manifest, for a tool.
func show(_ text: [UInt8], keys: [[UInt8]]) throws {
    guard text.count <= SignedManifest.longest else { return }
    let manifest: PinManifest = try SignedManifest(json: text).verified(by: keys)
    print(manifest.app, manifest.version, manifest.validity, manifest.rules.count)
    print(try PinManifest(json: Array(#"{"app":"notes"}"#.utf8)).app)
}

/// A custom store. The last manifest must outlive the process; otherwise an older one could be applied again.
struct DefaultsStore: ManifestStore {
    let file: ManifestFile

    func read() throws(ManifestError) -> [UInt8]? { try file.read() }
    func write(_ bytes: [UInt8]) throws(ManifestError) { try file.write(bytes) }
}
