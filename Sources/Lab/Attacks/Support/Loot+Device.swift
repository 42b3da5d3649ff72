import CountersignClient
import CountersignSeal
import CountersignVault
import CountersignWire

extension Loot {
    /// Every file of a device's backup, and what can be opened of it with a key that lies in it. `copy` is a folder of the thief's own:
    /// the app goes on as it was.
    init(backupOf folder: String, into copy: String) throws(StageFault) {
        self.init()
        var folders: Set<String> = []
        for path in try Files.all(below: folder) {
            let bytes = try Files.read(path)
            let place = String(path.dropFirst(folder.count + 1))
            add([Record(place: place, values: Loot.members(bytes) ?? [bytes])])
            folders.insert(try Loot.keep(bytes, at: place, in: copy))
        }
        guard !records.isEmpty else { throw StageFault("\(folder): a device with nothing on it") }
        for path in folders.sorted() { add(Loot.items(of: path)) }
    }

    /// The texts of a file of preferences; nil where it is none.
    private static func members(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard let document = try? JSONReader.read(bytes), let members = document.root.members else { return nil }
        return members.compactMap { $0.value.string.map { Array($0.utf8) } }
    }

    /// The folder that it was put into.
    private static func keep(_ bytes: [UInt8], at place: String, in copy: String) throws(StageFault) -> String {
        var folder = copy
        try Files.makeFolder(folder)
        for part in place.split(separator: "/").dropLast() {
            folder += "/\(part)"
            try Files.makeFolder(folder)
        }
        try Files.write(bytes, to: "\(copy)/\(place)")
        return folder
    }

    /// What a client of older schemes keeps, part by part, since its code is public; anything else as it is.
    private static func values(_ contents: Secret) -> [[UInt8]] {
        guard let kept = LegacyKept(contents) else { return [contents.bytesForThieves] }
        let secrets = [kept.session?.token, kept.session?.loginToken, kept.remembered?.value].compactMap(\.self)
        let user = kept.session.map { [Array($0.account.utf8), Array(String($0.userID).utf8)] } ?? []
        return secrets.map(\.bytesForThieves) + user
    }

    /// What is in a vault whose key lies beside it; nothing where it does not.
    private static func items(of folder: String) -> [Record] {
        let vault = Vault(.folder(folder))
        guard let names = try? vault.list() else { return [] }
        return names.compactMap { name in
            guard let item = try? vault.read(name).certain() else { return nil }
            return Record(place: "\(name)", values: Loot.values(item.contents.secret))
        }
    }
}
