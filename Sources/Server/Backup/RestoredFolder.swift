import CountersignAuthority
import CountersignSQL
import CountersignWire
import Glibc

/// The data folder that a restoration makes, which has nothing before. All is made in a folder of its own
/// within it, and moved out last, where nothing is replaced: a server that was started meanwhile keeps what
/// it has made, and a restoration that fails removes only what is its own.
final class RestoredFolder {
    private let path: String
    private let database: String
    private let draft: String
    /// Whether the draft of the store is this restoration's.
    var hasDraft = false
    private var inner: DataFolder?
    /// What was moved out, in this order.
    private var published: [String] = []

    init(_ path: String, database: String, draft: String) {
        (self.path, self.database, self.draft) = (path, database, draft)
    }

    private var lock: String { "\(path)/replay.lock" }

    // MARK: Before anything is written

    /// Throws unless the folder is empty, or is not there.
    func requireEmpty() throws(OperationalError) { try requireEmpty(but: []) }

    private func requireEmpty(but own: [String]) throws(OperationalError) {
        guard try KeyFile.exists(path) else { return }
        if let name = try RestoredFolder.names(in: path).first(where: { !own.contains($0) }) {
            throw OperationalError(
                .usage,
                message: "\(path): has \(name); expected an empty folder, or none there, to restore to")
        }
    }

    /// Throws if this is the superuser, and another user could exchange what is written by links: such a
    /// folder is restored by its owner.
    func requireOwn() throws(OperationalError) {
        guard geteuid() == 0 else { return }
        for place in [path, KeyFile.folder(of: database)] {
            var here = place
            while try !KeyFile.exists(here), here != KeyFile.folder(of: here) {
                here = KeyFile.folder(of: here)
            }
            let isThere = here == place
            guard let resolved = realpath(here, nil) else {
                throw SystemCallError(errno, while: "\(here): cannot look at it").fault(.unreachable)
            }
            here = String(cString: resolved)
            free(resolved)
            try RestoredFolder.requireOwn(here, mayBeShared: !isThere)
            while here != "/" {
                here = KeyFile.folder(of: here)
                try RestoredFolder.requireOwn(here, mayBeShared: true)
            }
        }
    }

    /// In a folder with the sticky bit, such as `/tmp`, only the owner of an entry renames it.
    private static func requireOwn(_ place: String, mayBeShared: Bool) throws(OperationalError) {
        var status = stat()
        guard lstat(place, &status) == 0 else {
            throw SystemCallError(errno, while: "\(place): cannot look at it").fault(.unreachable)
        }
        let isWritable =
            status.st_mode & 0o002 != 0 || status.st_mode & 0o020 != 0 && status.st_gid != 0
        let isShared = isWritable && !(mayBeShared && status.st_mode & S_ISVTX != 0)
        guard status.st_uid != 0 || isShared else { return }
        let (user, group) = (status.st_uid, status.st_gid)
        throw OperationalError(
            .usage,
            message: status.st_uid != 0
                ? "\(place): belongs to user \(user), who could exchange what the superuser writes there; "
                    + "run the command as that user: setpriv --reuid=\(user) --regid=\(group) --clear-groups "
                    + "countersign restore …"
                : "\(place): others may write to it, and could exchange what the superuser writes there; "
                    + "expected a folder that only one user writes to")
    }

    // MARK: Filling it

    /// Calls `body` with a folder within this one, while no server can run on this one. What `body` throws
    /// leaves nothing.
    func fill<Result>(
        by body: (DataFolder) throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        let isNew = try !KeyFile.exists(path)
        let folder = try DataFolder(path, absence: .create)
        defer {
            // Not empty unless it failed.
            if isNew { rmdir(path) }
        }
        // Of a folder that another user has made since the first look, too.
        try requireOwn()
        _ = folder.closeToOthers()
        let hadLock = try KeyFile.exists(lock)
        return try folder.withoutServer(refusal: "\(path): a server runs on it; nothing was restored") {
            () throws(OperationalError) in
            do throws(OperationalError) {
                try requireEmpty(but: ["replay.lock"])
                let place = KeyFile.draftName(for: "\(path)/restoring")
                guard mkdir(place, 0o700) == 0 else {
                    throw fault(place)
                }
                let inner = try DataFolder(place, absence: .fail)
                self.inner = inner
                let result = try body(inner)
                removeInner()
                return result
            } catch {
                for place in published.reversed() where unlink(place) != 0 { rmdir(place) }
                if hasDraft { StoreCopy.remove(draft) }
                removeInner()
                if !hadLock { unlink(lock) }
                throw error
            }
        }
    }

    private func removeInner() {
        guard let place = inner?.path else { return }
        for name in (try? RestoredFolder.names(in: place)) ?? [] {
            let one = "\(place)/\(name)"
            if unlink(one) == 0 { continue }
            for name in (try? RestoredFolder.names(in: one)) ?? [] { unlink("\(one)/\(name)") }
            rmdir(one)
        }
        rmdir(place)
    }

    /// Gives all files their names, and replaces none. The store comes last but for the master key: a server
    /// that is started before makes a store of its own, which then stands in the way, and one that is started
    /// in between finds a store without its key, and stops.
    func publish() throws(OperationalError) {
        guard let inner else { return }
        for name in try RestoredFolder.names(in: inner.path) {
            let place = inner.file(name)
            guard !name.hasSuffix(".lock"), place != inner.masterKey else { continue }
            var status = stat()
            guard lstat(place, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                try publish(place, as: "\(path)/\(name)")
                continue
            }
            guard mkdir("\(path)/\(name)", 0o700) == 0 else { throw fault("\(path)/\(name)") }
            published.append("\(path)/\(name)")
            for one in try RestoredFolder.names(in: place) {
                try publish("\(place)/\(one)", as: "\(path)/\(name)/\(one)")
            }
            KeyFile.syncFolder(of: "\(path)/\(name)/.")
        }
        KeyFile.syncFolder(of: "\(path)/.")
        try publish(draft, as: database)
        unlink(draft)
        KeyFile.syncFolder(of: database)
        if try KeyFile.exists(inner.masterKey) { try publish(inner.masterKey, as: "\(path)/master.key") }
        KeyFile.syncFolder(of: "\(path)/.")
    }

    /// A link, which unlike a rename replaces nothing.
    private func publish(_ place: String, as name: String) throws(OperationalError) {
        guard link(place, name) == 0 else { throw fault(name) }
        published.append(name)
    }

    private func fault(_ name: String) -> OperationalError {
        SystemCallError(errno, while: "\(name): cannot make it").fault(.unreachable)
    }

    private static func names(in path: String) throws(OperationalError) -> [String] {
        guard let folder = opendir(path) else {
            throw SystemCallError(errno, while: "\(path): cannot open the folder").fault(.usage)
        }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
