import CountersignSeal
import CountersignWire
import Glibc

/// What a program may do over the admin API. Each scope is by itself: to write includes no reading.
package enum APIScope: String, Sendable, CaseIterable {
    case appsRead = "apps:read"
    case appsWrite = "apps:write"
    case releasesRead = "releases:read"
    case releasesWrite = "releases:write"
    case accountsRead = "accounts:read"
    case accountsWrite = "accounts:write"
    case accountsVerify = "accounts:verify"
    case accountsRecover = "accounts:recover"
    case sessionsRead = "sessions:read"
    case sessionsWrite = "sessions:write"
    case auditRead = "audit:read"
    case webhooksRead = "webhooks:read"
    case webhooksWrite = "webhooks:write"
    case serverRead = "server:read"
    case serverWrite = "server:write"

    package var meaning: String {
        switch self {
        case .appsRead: "apps, their policies, routes, maintenance, texts of refusals and pin manifests"
        case .appsWrite: "add apps; change policies, routes, maintenance and texts; publish pin manifests"
        case .releasesRead: "releases, their policies, and what a retirement would cut off"
        case .releasesWrite: "add releases, whose secrets it is shown; change keys, policies and retirements"
        case .accountsRead: "accounts and their devices, and all that is kept about one person"
        case .accountsWrite: "add, lock, reset, remove and erase accounts: a reset code opens an account"
        case .accountsVerify: "make and redeem codes, which verify accounts"
        case .accountsRecover: "make reset codes alone: such a code opens an account"
        case .sessionsRead: "sessions"
        case .sessionsWrite: "end sessions, and forget devices"
        case .auditRead: "the record of changes, and its verification"
        case .webhooksRead: "webhooks, and deliveries that were given up: they name accounts"
        case .webhooksWrite: "add and remove webhooks, which are told of what accounts do; retry and rotate"
        case .serverRead:
            "version, nodes, counts of requests, the log's lines of refused requests, public keys and "
                + "tokens; in the console also doctor"
        case .serverWrite: "reload the settings"
        }
    }
}

/// A secret that opens the admin listener: 256 random bits, of which the digest is kept.
package struct APIToken: Sendable, Equatable {
    /// What the secret is presented as. None of them is accepted in another's place.
    package enum Kind: String, Sendable, CaseIterable {
        /// A program's, in each request of the API.
        case program
        /// The code in a link to the console, which is exchanged for a session once.
        case link
        /// A browser's session of the console, in its cookie.
        case console
    }

    /// `t_` and eight hexadecimal digits: names the token in lists and in the audit log.
    package let id: String
    package let name: String
    package let kind: Kind
    package let scopes: Set<APIScope>
    /// SHA-256 of the token's text. A random secret of this length needs no slow hash.
    let digest: [UInt8]
    /// Whole Unix seconds.
    package let created: Int64
    /// Whole Unix seconds; nil for a token that does not end.
    package let expires: Int64?
    /// How long the session will last that a link leads to, in seconds; nil for any other token.
    let sessionSeconds: Int64?
    /// When a session of the console was last used, in whole Unix seconds, to a minute; nil before that.
    var used: Int64?

    package func hasExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }

    /// Its holder, for the audit log.
    package var actor: AuditActor { .token(id: id, name: name) }

    package static let prefix = "cst_"

    /// 1 to 64 letters, digits, `-`, `_`, `.` and `@`.
    package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || "-_.@".utf8.contains($0) }
    }
}

/// The tokens of the admin API, in a file of the data folder. They are not in the store: a writer to the
/// database must not be able to make one, and a backup does not bring a revoked one back.
package struct APITokenFile: Sendable {
    /// The most tokens of a deployment.
    package static let most = 256

    private let path: String
    private let folder: String

    package init(_ folder: DataFolder) { (path, self.folder) = (folder.apiTokens, folder.path) }

    /// Of another file if the tokens have changed.
    package struct Stamp: Equatable, Sendable {
        let inode: UInt
        let seconds: Int
        let nanoseconds: Int
        let size: Int
        /// Of the file's rights, too.
        let changed: Int
        let changedNanoseconds: Int
    }

    /// Nil if there is no file.
    package func stamp() -> Stamp? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Stamp(
            inode: UInt(status.st_ino), seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec,
            size: Int(status.st_size), changed: status.st_ctim.tv_sec,
            changedNanoseconds: status.st_ctim.tv_nsec)
    }

    /// All tokens, also those that have expired. Throws if others may read the file, and if it is damaged.
    package func tokens() throws(OperationalError) -> [APIToken] {
        guard let contents = try KeyFile.read(path, limit: APITokenFile.mostBytes) else { return [] }
        let bytes = contents.withExposedBytes { span in (0..<span.count).map { span[$0] } }
        guard let document = try? JSONReader.read(bytes), let elements = document.root["tokens"]?.elements
        else { throw damaged }
        return try elements.map { (element) throws(OperationalError) in
            guard let token = APIToken(element, in: document) else { throw damaged }
            return token
        }
    }

    private static let mostBytes = 256 << 10

    static func checkRoom(for name: String, among tokens: [APIToken]) throws(OperationalError) {
        guard tokens.count < most else {
            throw OperationalError(.failed, message: "token \(name): there are \(most) already")
        }
    }

    private var damaged: OperationalError {
        OperationalError(
            .failed, message: "\(path): it is damaged; remove it, and add the tokens that are needed again")
    }

    /// Changes the tokens under a lock, so that of two commands none loses the other's.
    func change(
        _ change: (inout [APIToken]) throws(OperationalError) -> Void
    ) throws(OperationalError) {
        try checkOwner()
        let lock = open("\(path).lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else {
            throw SystemCallError(errno, while: "\(path).lock: cannot open").fault(.unreachable)
        }
        defer { close(lock) }
        try APITokenFile.wait(for: lock, at: path)
        var all = try tokens()
        let before = all
        try change(&all)
        guard all != before else { return }
        let document: JSONValue = ["tokens": .array(all.map(\.json))]
        try KeyFile.replace(path, by: document.bytes)
    }

    /// A file that another user makes cannot be read by the server, which would refuse every token then.
    private func checkOwner() throws(OperationalError) {
        var owned = stat()
        guard stat(folder, &owned) == 0, owned.st_uid != geteuid() else { return }
        throw OperationalError(
            .failed,
            message: "\(folder) belongs to the user \(owned.st_uid): run this as that user, for an installed "
                + "service by `countersign-admin`")
    }

    /// Another command holds the lock for milliseconds; one that hangs must not hang the server with it.
    private static func wait(for lock: Int32, at path: String) throws(OperationalError) {
        for _ in 0..<100 {
            if flock(lock, LOCK_EX | LOCK_NB) == 0 { return }
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw SystemCallError(errno, while: "\(path).lock: cannot lock").fault(.unreachable)
            }
            usleep(20_000)
        }
        throw OperationalError(
            .unreachable, message: "\(path).lock: another process has held it for two seconds")
    }
}

extension APIToken {
    fileprivate init?(_ value: JSON, in document: JSONDocument) {
        guard let id = value["id"]?.string, let name = value["name"]?.string,
            let names = value["scopes"]?.elements?.compactMap(\.string),
            let digest = value["digest"]?.string.flatMap(Hex.decode), digest.count == 32,
            let created = value["created"].flatMap({ document.integer($0, in: 0...Int.max) }),
            let kind = value["kind"]?.string.flatMap(Kind.init)
        else { return nil }
        self.init(
            id: id, name: name, kind: kind, scopes: Set(names.compactMap(APIScope.init)), digest: digest,
            created: Int64(created),
            expires: value["expires"].flatMap { document.integer($0, in: 0...Int.max) }.map(Int64.init),
            sessionSeconds: value["session_seconds"].flatMap { document.integer($0, in: 1...Int.max) }
                .map(Int64.init),
            used: value["used"].flatMap { document.integer($0, in: 0...Int.max) }.map(Int64.init))
    }

    fileprivate var json: JSONValue {
        [
            "id": .string(id), "name": .string(name), "kind": .string(kind.rawValue),
            "scopes": .strings(scopes.map(\.rawValue).sorted()), "digest": .string(Hex.encode(digest.span)),
            "created": .integer(created),
            "expires": expires.map { .integer($0) } ?? .null,
            "session_seconds": sessionSeconds.map { .integer($0) } ?? .null,
            "used": used.map { .integer($0) } ?? .null,
        ]
    }

    /// Whether the text is this token's; false once it has expired. `now` is in whole Unix seconds.
    fileprivate func isPresented(withDigest digest: Span<UInt8>, at now: Int64) -> Bool {
        let isEqual = ConstantTime.equals(self.digest.span, digest) == .equal
        return isEqual && !hasExpired(at: now)
    }

    /// The token of that text and kind among `tokens`; all of them are compared. `now` is in whole Unix
    /// seconds.
    package static func find(
        _ text: Span<UInt8>, of kind: Kind, among tokens: [APIToken], at now: Int64
    ) -> APIToken? {
        let digest = SHA256.digest(text)
        return find(digest: (0..<32).map { digest[$0] }, of: kind, among: tokens, at: now)
    }

    /// The same by the SHA-256 of the text.
    static func find(
        digest: [UInt8], of kind: Kind, among tokens: [APIToken], at now: Int64
    ) -> APIToken? {
        var found: APIToken?
        for token in tokens where token.isPresented(withDigest: digest.span, at: now) && token.kind == kind {
            found = token
        }
        return found
    }

    /// A new one with its text, which is kept nowhere. `created` and `expires` are in whole Unix seconds.
    static func make(
        _ name: String, kind: Kind, scopes: Set<APIScope>, created: Int64, expires: Int64?,
        sessionSeconds: Int64? = nil
    ) -> (token: APIToken, text: String) {
        let random = SystemRandom()
        let text = prefix + Base64.encode(random.bytes(32).span, as: .url)
        let digest = SHA256.digest(Array(text.utf8).span)
        let token = APIToken(
            id: "t_" + Hex.encode(random.bytes(4).span), name: name, kind: kind, scopes: scopes,
            digest: (0..<32).map { digest[$0] }, created: created, expires: expires,
            sessionSeconds: sessionSeconds)
        return (token, text)
    }
}

/// What the forms of a session's pages send back. A page of another site cannot know it.
package struct FormToken: Sendable {
    package let text: String

    /// Of the session with that secret.
    package init(ofSession secret: String) {
        let digest = SHA256.digest(Array("countersign console form\n\(secret)".utf8).span)
        let beginning = (0..<16).map { digest[$0] }
        text = Hex.encode(beginning.span)
    }

    package func isPresented(as other: String) -> Bool {
        ConstantTime.equals(Array(text.utf8).span, Array(other.utf8).span) == .equal
    }
}

/// Tokens, as commands add and revoke them. Each change is recorded in the audit log.
extension Deployment {
    /// Returns the token's text, which is shown once. `expires` is in whole Unix seconds.
    package func addAPIToken(
        _ name: String, scopes: Set<APIScope>, expires: Int64?, at now: Int64
    ) throws(OperationalError) -> (token: APIToken, text: String) {
        guard APIToken.isName(name) else {
            throw OperationalError(
                .usage,
                message: "token name `\(name)`: expected 1 to 64 letters, digits, `-`, `_`, `.` and `@`")
        }
        if expires != nil { try requireClock(for: "token \(name)") }
        let (token, text) = APIToken.make(
            name, kind: .program, scopes: scopes, created: now, expires: expires)
        try APITokenFile(folder).change { (tokens) throws(OperationalError) in
            guard !tokens.contains(where: { $0.name == name && $0.kind == .program }) else {
                throw OperationalError(
                    .failed,
                    message:
                        "token \(name): there is one of that name; `countersign token revoke \(name)` ends it"
                )
            }
            try APITokenFile.checkRoom(for: name, among: tokens)
            // Before the token is of use: what it does must not come before its own record.
            try record(.tokenAdd, token: token, at: now)
            tokens.append(token)
        }
        return (token, text)
    }

    /// Ends the token or session of that id, or all of that name, with the links of that name that wait.
    package func revokeAPITokens(_ name: String, at now: Int64) throws(OperationalError) -> [APIToken] {
        var revoked: [APIToken] = []
        try APITokenFile(folder).change { (tokens) throws(OperationalError) in
            revoked = tokens.filter { $0.name == name || $0.id == name }
            tokens.removeAll { $0.name == name || $0.id == name }
        }
        guard !revoked.isEmpty else {
            throw OperationalError(.missing, message: "token \(name): there is none")
        }
        for token in revoked where token.kind != .link {
            do throws(OperationalError) {
                try record(.tokenRevoke, token: token, at: now)
            } catch {
                throw OperationalError(
                    .failed,
                    message: "token \(name): it is revoked, but the audit log has no record of it: \(error)")
            }
        }
        return revoked
    }

    func record(
        _ action: AuditAction, token: APIToken, by actor: AuditActor? = nil, at now: Int64
    ) throws(OperationalError) {
        let draft = auditDraft(
            for: action, on: .deployment,
            details: [
                ("token", .string(token.id)), ("name", .string(token.name)),
                ("scopes", .strings(token.scopes.map(\.rawValue).sorted())),
                ("expires", token.expires.map { .integer($0) } ?? .null),
            ], by: actor)
        // No row of the store belongs to a token; a record goes with some value.
        try store.set(.writeCheck, to: Array(String(now).utf8), recording: draft)
    }
}
