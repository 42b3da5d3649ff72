import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// A profile's folder, of mode 0700: `profile.json`, and the secret in a file of its own, both 0600.
struct ProfileFolder: Sendable {
    let path: String

    /// A name stands for a folder in `~/.config/countersign`; what holds a `/` is a folder itself.
    init(_ name: String, environment: Environment) throws(OperationalError) {
        if name.contains("/") {
            path = name
            return
        }
        guard AppName(name.lowercased()) != nil, name.first != "." else {
            throw OperationalError(
                .usage,
                message: "--profile `\(name)`: expected letters, digits, `-` and `.`, or a folder with a `/`")
        }
        if let base = environment["XDG_CONFIG_HOME"], base.hasPrefix("/") {
            path = "\(base)/countersign/\(name)"
        } else if let home = environment["HOME"], !home.isEmpty {
            path = "\(home)/.config/countersign/\(name)"
        } else {
            throw OperationalError(
                .failed, message: "neither HOME nor XDG_CONFIG_HOME is set; expected one, to keep profiles in"
            )
        }
    }

    private var settings: String { "\(path)/profile.json" }
    private var secretFile: String { "\(path)/secret" }
    /// What the client keeps, sealed, where a profile's vault is a file of its own.
    var vault: String { "\(path)/vault" }
    /// What seals it, where that is not a passphrase.
    var vaultKey: String { "\(path)/vault.key" }

    /// Nil where there is none yet.
    func profile() throws(OperationalError) -> Profile? {
        guard access(settings, F_OK) == 0 else { return nil }
        return try Profile(try Console.readFile(settings, limit: 65_536), at: settings)
    }

    func read() throws(OperationalError) -> (profile: Profile, key: SigningKey) {
        guard let profile = try profile() else {
            throw OperationalError(
                .failed, message: "\(settings): no such profile; `countersign profile add` makes one")
        }
        guard let text = try KeyFile.read(secretFile) else {
            throw OperationalError(.failed, message: "\(secretFile): the profile's secret is gone")
        }
        let bytes = text.withExposedBytes { span in (0..<span.count).map { span[$0] } }
        let key = try KeyText.key(
            bytes, bare: .asPrinted(profile.scheme), algorithm: profile.algorithm, at: secretFile)
        return (profile, key)
    }

    /// Replaces a profile of that name: both files are whole at every moment.
    func write(_ profile: Profile, secret: [UInt8]) throws(OperationalError) {
        try make()
        try replace(secretFile, with: secret)
        try replace(settings, with: Array((profile.json.prettyText + "\n").utf8))
    }

    /// Where it is there already, nothing.
    func make() throws(OperationalError) {
        var start = path.startIndex
        while let slash = path[start...].firstIndex(of: "/") {
            start = path.index(after: slash)
            let parent = String(path[..<slash])
            if !parent.isEmpty, access(parent, F_OK) != 0 { mkdir(parent, 0o700) }
        }
        if mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else { throw Errno.error("\(path): cannot make") }
        // A folder that was there for something else is not made private behind its owner's back.
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_mode & 0o077 == 0 else {
            throw OperationalError(
                .failed, message: "\(path): is there already; expected a new folder, or one of mode 0700")
        }
    }

    private func replace(_ file: String, with bytes: [UInt8]) throws(OperationalError) {
        let draft = KeyFile.draftName(for: file)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Errno.error("\(draft): cannot make") }
        defer { unlink(draft) }
        let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        let synced = fsync(descriptor)
        close(descriptor)
        guard written == bytes.count, synced == 0, rename(draft, file) == 0 else {
            throw Errno.error("\(file): cannot write")
        }
    }
}
