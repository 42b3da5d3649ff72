/// The arguments of the command-line program.
struct CommandOptions {
    enum Format { case text, json }

    private(set) var settings = ".countersign/demo/Notes.json"
    /// Nil for the machine's own place for secrets.
    private(set) var vaultFolder: String?
    /// As the account's owner sees it among the sessions.
    private(set) var device = "notes"
    private(set) var isLocked = false
    private(set) var format = Format.text
    private(set) var wantsHelp = false

    /// Throws ``UsageError`` for an argument that is none of these.
    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--settings": settings = try CommandOptions.value(of: option, from: &rest)
            case "--vault": vaultFolder = try CommandOptions.value(of: option, from: &rest)
            case "--device": device = try CommandOptions.value(of: option, from: &rest)
            case "--lock": isLocked = true
            case "--json": format = .json
            case "--help": wantsHelp = true
            default: throw UsageError(description: "unknown argument `\(option)`; --help lists all")
            }
        }
    }

    private static func value(
        of option: String, from rest: inout ArraySlice<String>
    ) throws(UsageError) -> String {
        guard let value = rest.popFirst() else {
            throw UsageError(description: "\(option): expected a value")
        }
        return value
    }

    static let help = """
        usage: notes [--settings FILE] [--vault FOLDER] [--device NAME] [--lock] [--json]

          --settings FILE  the server's URL, keys and pins (default .countersign/demo/Notes.json)
          --vault FOLDER   keeps the session in this folder; a copy of the folder is enough to use it
                           (default: a file that is sealed under a passphrase)
          --device NAME    how this device is listed among the account's sessions (default `notes`)
          --lock           after a start, asks for the password of your account on this machine
          --json           prints each state as a line of JSON

        \(commands)
        """

    static let commands = """
        Commands, one a line, on standard input:
          signup NAME   login NAME   the password is read from the next line; a terminal does not show it
          add TEXT      refresh
          unlock        asks for the machine's password, after `--lock`
          continue      goes on after `update required`
          retry         reads the session again
          logout        quit
        """
}

/// An argument that the program does not have.
struct UsageError: Error, CustomStringConvertible {
    let description: String
}
