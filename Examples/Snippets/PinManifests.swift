// Pins that are replaced while the app runs, by whoever holds an offline key.
import CountersignTransport
import CountersignTrust

/// The trust in force: the app's own, until a newer manifest is taken up; kept in a file.
func keeper(_ builtIn: Trust, folder: String, keys: [[UInt8]]) throws -> TrustKeeper {
    try TrustKeeper(
        builtIn: builtIn, version: 3, app: "notes", keys: keys, store: ManifestFile("\(folder)/pins.json"))
}

/// Why the manifest that was kept is not in force, for the app's log.
func problem(of keeper: TrustKeeper) -> ManifestError? { keeper.discarded }

/// A manifest that was fetched, from wherever: only its signature counts.
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
    case .badSignature: "signed by nobody who may"
    case .otherApp(let app): "for \(app)"
    case .notNewer(let version, let inForce): "version \(version), and \(inForce) is in force"
    case .notYetValid(let from): "not before \(from)"
    case .expired(let at): "not after \(at)"
    case .hostNotPinned(let host): "does not pin \(host)"
    case .store(let detail): "cannot be kept: \(detail)"
    }
}

/// What is in one, for a tool that shows it.
func show(_ text: [UInt8], keys: [[UInt8]]) throws {
    guard text.count <= SignedManifest.longest else { return }
    let manifest: PinManifest = try SignedManifest(json: text).verified(by: keys)
    print(manifest.app, manifest.version, manifest.validity, manifest.rules.count)
    print(try PinManifest(json: Array(#"{"app":"notes"}"#.utf8)).app)
}

/// A store of one's own: what the last manifest was has to outlive the process, lest an older one be taken up
/// again.
struct DefaultsStore: ManifestStore {
    let file: ManifestFile

    func read() throws(ManifestError) -> [UInt8]? { try file.read() }
    func write(_ bytes: [UInt8]) throws(ManifestError) { try file.write(bytes) }
}
