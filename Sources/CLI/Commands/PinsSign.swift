import CountersignTrust
import CountersignWire

extension Command {
    static let pinsSign = Command(
        words: ["pins", "sign"], summary: "sign a pin manifest",
        positionals: [Positional(name: "FILE")],
        options: [.value("key", "F", "the private key that `pins keygen` made")],
        notes: """
            FILE is the manifest, as JSON (docs/protocol.md, "Pin manifests"):
            {"app":"shop","version":2,"not_before":1790000000,"not_after":1797776000,
             "hosts":[{"pattern":"**.example.com","pins":["sha256/…"],"backups":["sha256/…"]}]}
            It is signed to the byte, if it is one that an app would take up. The signed one goes to standard output.
            """
    ) { (run) throws(Fault) in
        let path = try run.required("FILE")
        let key = try PinKey.privateKey(inFile: run.requiredOption("key"))
        let bytes = try Console.readFile(path, limit: SignedManifest.longest)
        do throws(ManifestProblem) {
            _ = try PinManifest(json: bytes)
        } catch {
            throw Fault(.failed, "\(path): \(error)")
        }
        guard let signed = SignedManifest.text(of: bytes, signedBy: key), signed.count < SignedManifest.longest else {
            throw Fault(
                .failed, "\(path): expected a manifest that has \(SignedManifest.longest) bytes when it is signed")
        }
        try run.console.write(signed + Array("\n".utf8))
        return .success
    }
}
