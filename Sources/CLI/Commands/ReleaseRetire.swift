import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let releaseRetire = Command(
        words: ["release", "retire"], summary: "send a version's callers to its successor",
        positionals: [Positional(name: "KEY_ID")],
        options: [
            .value("at", "TIME", "from when on: now, Unix seconds, or 2027-01-31T12:00:00Z"),
            .value("update-url", "URL", "where the new version is"), .data, .json,
        ]
    ) { (run) throws(Fault) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        let text = try run.requiredOption("at")
        guard let at = Moment.read(text, now: run.now) else {
            throw Fault(.usage, "--at `\(text)`: expected now, Unix seconds, or a time such as 2027-01-31T12:00:00Z")
        }
        let link = try run.requiredOption("update-url")
        guard isLink(link) else { throw Fault(.usage, "--update-url: expected an https:// or app-store URL") }
        try run.deployment().retire(id, at: at, updateURL: link)
        try run.print([
            "key_id": .string(id.description), "retired_at": .integer(at), "update_url": .string(link),
        ]) { at <= run.now ? "\(id) is retired" : "\(id) is retired from \(at) on" }
        return .success
    }

    /// `scheme:something`, visible ASCII: market links have schemes of their own (`itms-apps:`, `market:`).
    private static func isLink(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1)
        return text.utf8.count <= 2048 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && parts.count == 2
            && parts[0].allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || [0x2B, 0x2D, 0x2E].contains($0) }
            && parts[0].first.map { ASCII.isLetter($0) } == true
            && !["javascript", "data"].contains(String(text.prefix { $0 != ":" }).lowercased())
    }
}
