import CountersignAuthority
import CountersignSeal
import CountersignWire
import Glibc

extension Command {
    static let pinsKeygen = Command(
        words: ["pins", "keygen"], summary: "make the offline key that signs pin manifests",
        positionals: [Positional(name: "FILE")], options: [.json],
        notes: """
            FILE gets the private key (PKCS #8, mode 0600) and must not be there yet. It belongs on no server: whoever has it, and an
            authority's certificate, can stand in for yours. What is printed is the public key, for the app to have built in,
            beside that of a second pair, by which the first can be replaced.
            """
    ) { (run) throws(Fault) in
        let path = try run.required("FILE")
        guard access(path, F_OK) != 0 else { throw Fault(.failed, "\(path): is there already; expected a new file") }
        try KeyFile.make(path, PrivateKey.pem(ed25519Seed: Secret(random: 32)))
        // As the file has it: of two that make it at once, one is there.
        let key = PinKey.text(of: try PinKey.privateKey(inFile: path).publicKey)
        try run.print(["file": .string(path), "public_key": .string(key)]) { "public_key  \(key)" }
        return .success
    }
}
