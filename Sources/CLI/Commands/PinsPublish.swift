import CountersignAuthority
import CountersignTrust
import CountersignWire

extension Command {
    static let pinsPublish = Command(
        words: ["pins", "publish"], summary: "hand a signed pin manifest to clients that ask",
        positionals: [Positional(name: "FILE")], options: [PinKey.publicOption, .data, .json],
        notes: """
            Served from the next request on at `pins/APP` below the authority's prefix, to the byte. Its app must be there, its time not
            be over, and its version above that of the one which is served. An old one that leaked can be published by nobody: apps
            take up none that is not newer than theirs.
            """
    ) { (run) throws(Fault) in
        let path = try run.required("FILE")
        let key = try PinKey.publicKey(run)
        let new = try VerifiedManifest(inFile: path, signedWith: key)
        guard let app = AppName(new.manifest.app) else {
            throw Fault(.failed, "\(path): it is for the app `\(new.manifest.app)`, which no app here can be called")
        }
        guard new.manifest.validity.upperBound >= run.now else {
            throw Fault(.failed, "\(path): \(ManifestProblem.expired(at: new.manifest.validity.upperBound))")
        }
        let deployment = try run.deployment()
        let earlier = try deployment.pinManifests().text(of: app)
        if let earlier { try require(new.manifest, above: earlier, key, path) }
        try deployment.publish(pinManifest: new.text, version: new.manifest.version, of: app, after: earlier)
        let version = new.manifest.version
        try run.print(["app": .string(app.description), "version": .integer(Int64(version))]) {
            "version \(version) is what clients of \(app) get"
        }
        return .success
    }

    /// One that was signed with an earlier key is not asked for its version: to replace the key is what two are for.
    private static func require(
        _ new: PinManifest, above earlier: String, _ key: [UInt8], _ path: String
    ) throws(Fault) {
        let inForce: Int
        do throws(ManifestProblem) {
            inForce = try SignedManifest(json: Array(earlier.utf8)).verified(by: [key]).version
        } catch {
            guard error == .badSignature else { throw Fault(.failed, "what is served: \(error)") }
            return
        }
        guard new.version > inForce else {
            throw Fault(.failed, "\(path): \(ManifestProblem.notNewer(version: new.version, inForce: inForce))")
        }
    }
}
