import CountersignWire
import Glibc

/// The folder that holds a deployment: database, keys, certificate. Of mode 0700; nothing else is written anywhere.
package struct DataFolder: Sendable, Equatable {
    /// What to do where there is no such folder.
    package enum Absence: Sendable { case isAFault, makesOne }

    package let path: String

    package init(_ path: String, absence: Absence) throws(Fault) {
        self.path = path
        var status = stat()
        if stat(path, &status) != 0 {
            guard errno == ENOENT, absence == .makesOne else { throw DataFolder.absent(path, errno) }
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                if errno == ENOENT {
                    throw Fault(.unreachable, "\(path): the folder it is to be made in does not exist")
                }
                throw SystemFault(errno, "\(path): cannot make the data folder").fault(.unreachable)
            }
            guard stat(path, &status) == 0 else { throw DataFolder.absent(path, errno) }
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw Fault(.unreachable, "\(path): not a folder; expected the data folder")
        }
        guard access(path, R_OK | W_OK | X_OK) == 0 else {
            throw SystemFault(errno, "\(path): cannot write to the data folder").fault(.unreachable)
        }
    }

    /// Takes every right from the owner's group and from others, as for a folder that was made beforehand.
    /// Answers one sentence where that is not for us to do: another user owns the folder, or it is one that
    /// all users share (`/tmp`).
    package func closeToOthers() -> String? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return nil }
        let reason: String
        if status.st_uid != geteuid() {
            reason = "it belongs to user \(status.st_uid), and this process runs as user \(geteuid())"
        } else if status.st_mode & S_ISVTX != 0 {
            reason = "it is a folder that users share"
        } else if chmod(path, 0o700) == 0 {
            return nil
        } else {
            reason = String(cString: strerror(errno))
        }
        let mode = String(status.st_mode & 0o7777, radix: 8)
        return "\(path): the data folder has mode \(mode) and should have 700, which was not set: \(reason)"
    }

    package func file(_ name: String) -> String { "\(path)/\(name)" }

    package var database: String { file("countersign.db") }
    package var masterKey: String { file("master.key") }
    package var generation: String { file("generation") }
    package var replay: String { file("replay") }
    package var loginLimits: String { file("login-limits") }
    package var adminToken: String { file("admin-token") }
    package var decideSecret: String { file("decide-secret") }
    package var tls: String { file("tls") }

    private static func absent(_ path: String, _ code: Int32) -> Fault {
        if code == ENOENT {
            return Fault(
                .unreachable,
                "\(path): no data folder there; `countersign serve` or `countersign app add` makes one (--data DIR)")
        }
        return SystemFault(code, "\(path): cannot open the data folder").fault(.unreachable)
    }
}

/// An errno with what we were about.
package struct SystemFault {
    private let code: Int32
    private let what: String

    package init(_ code: Int32, _ what: String) {
        self.code = code
        self.what = what
    }

    package func fault(_ kind: Fault.Kind) -> Fault { Fault(kind, "\(what): \(String(cString: strerror(code)))") }
}
