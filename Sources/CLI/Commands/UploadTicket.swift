import Countersign
import CountersignAuthority
import CountersignTransport
import CountersignWire

extension Command {
    static let uploadTicket = Command(
        words: ["upload-ticket"], summary: "get the right to send one upload later, without a signature",
        positionals: [Positional(name: "URL|PATH")],
        options: [
            ProfileSession.profileOption,
            .value("file", placeholder: "F", meaning: "the file that will be sent"),
            .value(
                "request", placeholder: "METHOD", meaning: "PUT, POST or PATCH (default: PUT)", letter: "X"),
            .value(
                "content-type", placeholder: "TYPE",
                meaning: "the Content-Type that it will have; none goes on otherwise"),
            .value(
                "expires", placeholder: "TIME",
                meaning: "how long the ticket lives, such as 30m or 12h (default: 1h)"), .json,
        ],
        notes: """
            Prints the curl command that sends the file, for a POSIX shell. curl reads the ticket from the
            command's here-document, for every user of the machine may list the arguments of processes.
            With the ticket, any program can send this file there once, until it expires or the session
            ends; it permits nothing else. The app's policy must allow tickets (`countersign app policy APP
            --set upload-tickets=16`); otherwise the command fails with `forbidden`.

            With --ca in the profile, curl verifies the server by that file. With --pin alone, it accepts a \
            server
            whose own certificate has a pinned key, and no other: `--insecure` then leaves out the check of \
            the
            chain and the name, which a certificate that signs itself would fail.
            """
    ) { (run) throws(OperationalError) in
        guard let file = run.arguments.value("file") else {
            throw OperationalError(.usage, message: "--file F: missing")
        }
        let text = run.arguments.value("expires") ?? "1h"
        guard let seconds = PolicyKey.seconds(text[...]) else {
            throw OperationalError(
                .usage, message: "--expires `\(text)`: expected a time from 1s to 24h such as 30m")
        }
        var request = APIRequest(
            APIMethod(run.arguments.value("request") ?? "PUT"), run.arguments.positional("URL|PATH") ?? "/",
            body: .file(path: file))
        if let type = run.arguments.value("content-type") { request.set("Content-Type", type) }
        let session = try ProfileSession(run)
        let asked = request
        let ticket = try session.perform { (client) throws(CountersignError) in
            try await client.uploadTicket(for: asked, expiresIn: .seconds(seconds))
        }
        try run.print(ticket.json) { ticket.curl(sending: file, to: session.profile) }
        return .success
    }
}

extension UploadTicket {
    fileprivate var json: JSONValue {
        [
            "method": .string(method.description), "url": .string(url), "length": .integer(Int64(length)),
            "expires": .integer(expires), "headers": .object(fields.map { ($0.name, .string($0.text)) }),
        ]
    }

    /// The fields stand in a here-document and not among the arguments, which any process may list. A field's
    /// value has no line break, and its line is never the delimiter: that has no colon.
    ///
    /// `-T` would add the file's name to a path that ends in `/`.
    fileprivate func curl(sending file: String, to server: Profile) -> String {
        let isFolder = url.prefix { $0 != "?" }.hasSuffix("/")
        var words = ["curl", "--fail-with-body", "--path-as-is", "--globoff", "-X", method.description]
        words += UploadTicket.trust(in: server)
        words += isFolder ? ["--data-binary", "@\(file)"] : ["-T", file]
        words += ["-H", "@-", url]
        let lines = fields.map { "\($0.name): \($0.text)" }
        return ([words.map(UploadTicket.quoted).joined(separator: " ") + " <<'FIELDS'"] + lines + ["FIELDS"])
            .joined(separator: "\n")
    }

    /// curl compares pins with `--insecure`, too, and with the key of the server's own certificate alone.
    private static func trust(in server: Profile) -> [String] {
        if let authorities = server.certificates { return ["--cacert", authorities] }
        guard !server.pins.isEmpty else { return [] }
        let keys = server.pins.map { "sha256//\($0.description.dropFirst("sha256/".count))" }
        return ["--insecure", "--pinnedpubkey", keys.joined(separator: ";")]
    }

    /// As a POSIX shell reads it as one word.
    private static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || Array("-_./:@=,+".utf8).contains(byte)
        }
        guard !isPlain || word.isEmpty else { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
            + "'"
    }
}

extension HeaderField {
    fileprivate var text: String { String(decoding: value, as: UTF8.self) }
}
