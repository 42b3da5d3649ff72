import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignServer
import CountersignWire
import Glibc

/// One run of a command: what it was given, and where it reads and writes.
package struct Invocation: Sendable {
    package var arguments: Arguments
    package var console: Console
    var environment: Environment
    /// The server in which the command runs; nil in a process of its own.
    var host: CommandHost?
    /// The clock of a command in a process of its own. It is judged when the deployment is opened.
    private let ownClock = TrustedClock()
    /// All commands of the program.
    var commands = Tool.commands
    /// Chooses the parts of the server that `serve` starts.
    package var composition: any ServerComposition = SoundComposition()

    /// A positional that the parser has made sure of.
    package func required(_ name: String) throws(OperationalError) -> String {
        if let text = arguments.positional(name) ?? arguments.value(name) { return text }
        throw OperationalError(.usage, message: "\(name) is missing")
    }

    package func requiredOption(_ name: String) throws(OperationalError) -> String {
        if let text = arguments.value(name) { return text }
        throw OperationalError(.usage, message: "--\(name) is missing")
    }

    /// Text for people, or with `--json` the same as JSON.
    package func print(_ json: JSONValue, text: () -> String) throws(OperationalError) {
        try console.print(arguments.has("json") ? json.prettyText : text())
    }

    /// The settings that environment and settings file make, with `--data` and `--store` over them: the same
    /// that `serve` would use.
    func configuration() throws(OperationalError) -> Configuration {
        if let host { return host.configuration }
        var sources = Configuration.Sources()
        sources.environment = environment.variables
        if let path = environment["COUNTERSIGN_CONFIG"] {
            sources.file = (path, try Console.readFile(path, limit: Configuration.Sources.mostFileBytes))
        }
        if let data = arguments.value("data") { sources.flags.append(("data", data)) }
        if let store = arguments.value("store") { sources.flags.append(("store", store)) }
        return try Configuration(from: sources)
    }

    /// The path of the data folder alone, for what a running server is to judge: `--data`, else
    /// `COUNTERSIGN_DATA`, else the settings file, which is not read where one of them is given.
    package func dataFolder() throws(OperationalError) -> String {
        if let host { return host.configuration.data }
        var sources = Configuration.Sources()
        if let path = arguments.value("data") {
            sources.flags = [("data", path)]
        } else if let path = environment["COUNTERSIGN_DATA"] {
            sources.environment = ["COUNTERSIGN_DATA": path]
        } else if let path = environment["COUNTERSIGN_CONFIG"] {
            sources.file = (path, try Console.readFile(path, limit: Configuration.Sources.mostFileBytes))
        }
        return try Configuration.dataFolder(in: sources)
    }

    func deployment(
        absence: DataFolder.MissingFolderAction = .fail, accepting copy: AcceptedCopy = .latest
    ) throws(OperationalError) -> Deployment {
        if let host { return try host.open() }
        let deployment = try configuration().openDeployment(
            absence: absence, environment: environment.variables, clock: .judgedOnce(ownClock),
            accepting: copy)
        noteMigration(deployment.migration)
        return deployment
    }

    /// The clock of the server in which the command runs, or the command's own.
    package var clock: TrustedClock { host?.clock ?? ownClock }

    /// The time in whole Unix seconds: the wall clock, or the estimate if another clock has contradicted it
    /// since the deployment was opened.
    package var now: Int64 { clock.estimate }

    func appName() throws(OperationalError) -> AppName { try AppName(argument: required("APP")) }

    package func schemeName(default fallback: SchemeName = .messageSignatures) throws(OperationalError)
        -> SchemeName
    {
        guard let text = arguments.value("scheme") else { return fallback }
        if text == SchemeName.token.rawValue { throw Invocation.unsignedScheme }
        guard let name = SchemeName(rawValue: text), SchemeRegistry.standard.scheme(named: name) != nil else {
            let known = SchemeRegistry.standard.schemes.map(\.name.rawValue).joined(separator: ", ")
            throw OperationalError(
                .usage, message: "--scheme `\(text)`: expected one that this build speaks: \(known)")
        }
        return name
    }

    /// The same for a release, which may be of app versions that send a token and sign nothing.
    func releaseScheme() throws(OperationalError) -> SchemeName {
        arguments.value("scheme") == SchemeName.token.rawValue ? .token : try schemeName()
    }

    static let unsignedScheme = OperationalError(
        .usage,
        message:
            "scheme token has no signature: there is nothing to sign, verify or explain. A server looks the "
            + "token "
            + "up among its sessions (docs/protocol.md, \"Tokens alone\")")

    package func keyID(_ text: String, at place: String) throws(OperationalError) -> KeyID {
        guard let id = KeyID(text) else {
            throw OperationalError(
                .usage, message: "\(place) `\(text)`: expected 1 to \(KeyID.longest) visible ASCII characters"
            )
        }
        return id
    }
}

/// The process's environment variables that mean something here.
struct Environment: Sendable {
    var variables: [String: String]

    subscript(name: String) -> String? { variables[name] }

    static var process: Environment {
        let names =
            Setting.all.map(\.variable) + ServiceManager.variables + [
                MasterKeySource.variable, "CREDENTIALS_DIRECTORY", "COUNTERSIGN_CONFIG",
                "COUNTERSIGN_PROFILE",
                "COUNTERSIGN_SECRET", VaultPassphrase.variable, "HOME", "NO_COLOR", "PATH",
                "XDG_CONFIG_HOME",
            ]
        var variables: [String: String] = [:]
        for name in names {
            guard let text = getenv(name) else { continue }
            variables[name] = String(cString: text)
        }
        return Environment(variables: variables)
    }
}
