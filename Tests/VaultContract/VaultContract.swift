// What every vault must do, whatever keeps it: one suite for the memory and the sealed file under each guard.
// Plain functions that give what was wrong, because test-peers runs them in a process of its own. Never shipped.
import CountersignSeal
import CountersignVault

package struct VaultContract {
    let vault: Vault
    /// Opens the same place anew, as the next start of a program does.
    let reopen: () -> Vault

    package init(_ vault: Vault, reopen: @escaping () -> Vault) {
        self.vault = vault
        self.reopen = reopen
    }

    /// Each rule's name with what it found; empty text where it holds.
    package func run() -> [(rule: String, wrong: String)] {
        VaultContract.rules.map { rule in
            do {
                return (rule.name, try rule.check(self) ?? "")
            } catch {
                return (rule.name, "threw \(error)")
            }
        }
    }

    typealias Rule = (name: String, check: @Sendable (VaultContract) throws(VaultError) -> String?)

    static let rules: [Rule] = [
        ("what is not there is absent", absence), ("text and bytes come back as they were", contents),
        ("a second start reads the first's", survival), ("accounts belong to services", listing),
        ("names are told apart by bytes", spelling), ("removed is absent, twice too", removal),
        ("a late writer changes nothing", lateWriter), ("what must be absent is", onlyWhereAbsent),
        ("a name that cannot be kept is refused", names),
    ]

    static func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }

    static func bytes(_ secret: Secret) -> [UInt8] {
        secret.withExposedBytes { span in span.indices.map { span[$0] } }
    }

    private static func item(_ account: String, _ service: String = "contract") throws(VaultError) -> ItemName
    {
        try ItemName(service: service, account: account)
    }

    private static func text(_ vault: Vault, _ name: ItemName) throws(VaultError) -> String? {
        try vault.read(name).get().map { String(decoding: bytes($0.contents.secret), as: UTF8.self) }
    }

    private static func absence(_ here: VaultContract) throws(VaultError) -> String? {
        if case .absent = here.vault.read(try item("nobody")) { return nil }
        return "read \(here.vault.read(try item("nobody")))"
    }

    private static func contents(_ here: VaultContract) throws(VaultError) -> String? {
        let name = try item("contents")
        for bytes in [[], [0], Array(0...255), Array(repeating: 7, count: 20_000)] as [[UInt8]] {
            try here.vault.write(.bytes(Secret(copying: bytes.span)), to: name)
            guard let found = try here.vault.read(name).get() else { return "lost \(bytes.count) bytes" }
            guard self.bytes(found.contents.secret) == bytes, found.contents.kind == .bytes else {
                return "\(bytes.count) bytes came back otherwise"
            }
        }
        try here.vault.write(.text(secret("gruß 🔑")), to: name)
        guard let found = try here.vault.read(name).get(), found.contents.kind == .text else {
            return "lost a text"
        }
        return bytes(found.contents.secret) == Array("gruß 🔑".utf8) ? nil : "a text came back otherwise"
    }

    private static func survival(_ here: VaultContract) throws(VaultError) -> String? {
        let name = try item("survivor")
        let version = try here.vault.write(.text(secret("kept")), to: name)
        let found = try here.reopen().read(name).get()
        return found?.version == version ? nil : "found \(String(describing: found?.version))"
    }

    private static func listing(_ here: VaultContract) throws(VaultError) -> String? {
        for (service, account) in [("list.a", "2"), ("list.a", "1"), ("list.b", "1")] {
            try here.vault.write(.text(secret("x")), to: item(account, service))
        }
        let accounts = try here.vault.list().filter { $0.service == "list.a" }.map(\.account)
        guard accounts == ["1", "2"] else { return "the accounts of list.a are \(accounts)" }
        let all = try here.vault.list().filter { $0.service.hasPrefix("list.") }
        return all.map(\.description) == ["list.a / 1", "list.a / 2", "list.b / 1"] ? nil : "all are \(all)"
    }

    private static func spelling(_ here: VaultContract) throws(VaultError) -> String? {
        let (whole, parts) = ("\u{E9}", "e\u{301}")
        try here.vault.write(.text(secret("whole")), to: item(whole))
        try here.vault.write(.text(secret("parts")), to: item(parts))
        guard try text(here.vault, item(whole)) == "whole", try text(here.vault, item(parts)) == "parts"
        else {
            return "two spellings of é are one name"
        }
        try here.vault.write(.text(secret("upper")), to: item("CASE"))
        return try text(here.vault, item("case")) == nil ? nil : "CASE and case are one name"
    }

    private static func removal(_ here: VaultContract) throws(VaultError) -> String? {
        let (name, other) = (try item("gone"), try item("stays"))
        try here.vault.write(.text(secret("x")), to: name)
        try here.vault.write(.text(secret("y")), to: other)
        try here.vault.erase(name)
        try here.vault.erase(name)
        guard case .absent = here.reopen().read(name) else { return "still there" }
        return try text(here.vault, other) == "y" ? nil : "took another with it"
    }

    /// A refresh that began before a sign-out must not end it; nor one from the life before this one.
    private static func lateWriter(_ here: VaultContract) throws(VaultError) -> String? {
        let name = try item("session")
        let first = try here.vault.write(.bytes(secret("first")), to: name)
        let second = try here.vault.write(.bytes(secret("second")), to: name, expecting: .version(first))
        guard
            isRefused({ () throws(VaultError) in
                try here.vault.write(.bytes(secret("late")), to: name, expecting: .version(first))
            })
        else { return "an old version was overwritten from" }
        guard isRefused({ () throws(VaultError) in try here.vault.erase(name, expecting: .version(first)) })
        else {
            return "an old version removed"
        }
        try here.vault.erase(name, expecting: .version(second))
        guard
            isRefused({ () throws(VaultError) in
                try here.vault.write(.bytes(secret("late")), to: name, expecting: .version(second))
            })
        else { return "a signed-out user came back" }
        guard case .absent = here.vault.read(name) else { return "something is left after sign-out" }
        try here.vault.write(.bytes(secret("first")), to: name, expecting: .absent)
        let isKept = isRefused { () throws(VaultError) in
            try here.vault.write(.bytes(secret("late")), to: name, expecting: .version(first))
        }
        return isKept ? nil : "a version of the life before was taken"
    }

    private static func onlyWhereAbsent(_ here: VaultContract) throws(VaultError) -> String? {
        let name = try item("once")
        try here.vault.write(.text(secret("a")), to: name, expecting: .absent)
        guard
            isRefused({ () throws(VaultError) in
                try here.vault.write(.text(secret("b")), to: name, expecting: .absent)
            })
        else { return "overwritten" }
        return try text(here.vault, name) == "a" ? nil : "changed although refused"
    }

    private static func names(_ here: VaultContract) throws(VaultError) -> String? {
        for bad in ["", "a\0b", "a\nb", String(repeating: "x", count: 256)] {
            if (try? ItemName(service: bad, account: "a")) != nil {
                return "took a service of \(bad.utf8.count) bytes"
            }
            if (try? ItemName(service: "s", account: bad)) != nil {
                return "took an account of \(bad.utf8.count) bytes"
            }
        }
        let longest = try item(String(repeating: "x", count: 255), String(repeating: "y", count: 255))
        try here.vault.write(.text(secret("long")), to: longest)
        return try text(here.vault, longest) == "long" ? nil : "the longest name is lost"
    }

    private static func isRefused<Result>(_ change: () throws(VaultError) -> Result) -> Bool {
        do {
            _ = try change()
            return false
        } catch {
            return error == .changed
        }
    }
}
