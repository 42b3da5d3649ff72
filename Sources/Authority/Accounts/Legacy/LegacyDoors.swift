import CountersignGate
import CountersignSchemes
import CountersignWire

/// What an old client asks for at a door.
package enum LegacyCall: Sendable, Equatable {
    /// Opens accounts whose rung has one of these doors.
    case login([Rung.Door])
    case logout
    case token
    /// The door is that of the plain rung of its method.
    case signUp(Rung.Door)
    /// As ``login(_:)``, for the old password.
    case password([Rung.Door])
}

/// The doors of one app: the paths that its policy names; where it names none for the login, or for tokens,
/// the PHP scripts of old. Source: docs/protocol.md, "The login ladder".
package struct LegacyDoors: Sendable {
    /// What a target is: to us, and to a backend that has these paths too.
    package enum Reading: Sendable, Equatable {
        case called(LegacyCall)
        /// Some backend would take it for this door, and we would not: it is spelled otherwise, goes on
        /// behind the door's path, or comes by another method.
        case meant(Policy.LegacyDoor)
    }

    /// One path, ready to be compared.
    struct Door: Sendable {
        let kind: Policy.LegacyDoor
        let path: [UInt8]
        let loose: LoosePath
        /// What it is by GET, and by POST; nil for a method that it is not called by.
        let get: LegacyCall?
        let post: LegacyCall?
    }

    let all: [Door]

    package init(_ policy: Policy) {
        var doors = policy.legacyPaths.map { Door($0) }
        if !doors.contains(where: { $0.kind == .login }) { doors += Door.scriptsOfLogin }
        if !doors.contains(where: { $0.kind == .token }) { doors.append(Door.scriptOfTokens) }
        all = doors
    }

    /// Whether each path is one door's, and has a name to be found by.
    var areApart: Bool { Set(all.map(\.path)).count == all.count && all.allSatisfy { $0.loose.count > 0 } }

    /// The door that the request calls, or that a backend could take it to call; nil for all other requests.
    package func reading(of request: borrowing Request) -> Reading? {
        let path = request.head.span.extracting(request.path.range)
        for door in all where path.matches(door.path.span) {
            return door.call(by: request).map { .called($0) } ?? .meant(door.kind)
        }
        let loose = LoosePath(path)
        return all.first { loose.isAt(or: $0.loose) }.map { .meant($0.kind) }
    }
}

extension LegacyDoors.Door {
    /// A path of the app's own takes all rungs: a GET the one that is sent by GET, a POST the others.
    fileprivate init(_ named: Policy.LegacyPath) {
        kind = named.door
        path = named.path
        loose = LoosePath(named.path.span)
        switch named.door {
        case .login:
            get = .login([.query])
            post = .login([.form, .minute])
        case .logout:
            get = .logout
            post = .logout
        case .token:
            get = .token
            post = .token
        case .signUp:
            get = .signUp(.query)
            post = .signUp(.form)
        case .password:
            get = .password([.query])
            post = .password([.form, .minute])
        }
    }

    private init(_ kind: Policy.LegacyDoor, at name: StaticString, get: LegacyCall? = nil, post: LegacyCall) {
        let path = name.withUTF8Buffer { Array($0) }
        self.kind = kind
        self.path = path
        loose = LoosePath(path.span)
        self.get = get
        self.post = post
    }

    fileprivate static let scriptsOfLogin = [
        Self(.login, at: "/login/login.php", get: .login([.query]), post: .login([.form])),
        Self(.login, at: "/login/loginhmac.php", post: .login([.minute])),
    ]
    fileprivate static let scriptOfTokens = Self(.token, at: "/login/token.php", post: .token)

    fileprivate func call(by request: borrowing Request) -> LegacyCall? {
        if request.matches(request.method, "GET") { return get }
        return request.matches(request.method, "POST") ? post : nil
    }
}

/// Tells most requests from those that may mean a door of some app: by their path, without an allocation.
/// What it passes is read once more, by the doors of its app.
package final class LegacyScreen: Sendable {
    /// Of the deployment, when it was made: another one asks for another screen.
    package let generation: UInt64
    /// Of all apps, each path once.
    private let doors: [LegacyDoors.Door]
    /// The doors' last segments, in lower case.
    private let names: [[UInt8]]
    /// Bit `b % 64` of word `b / 64` is set where a name begins with the byte `b`.
    private let beginnings: InlineArray<4, UInt64>

    init(of apps: [LegacyApp], generation: UInt64) {
        self.generation = generation
        var paths: Set<[UInt8]> = []
        let doors = apps.flatMap { $0.doors.all }.filter { paths.insert($0.path).inserted }
        var beginnings = InlineArray<4, UInt64>(repeating: 0)
        var names: Set<[UInt8]> = []
        for door in doors where door.loose.count > 0 {
            let name = Array(door.loose[door.loose.count - 1])
            names.insert(name)
            beginnings[Int(name[0]) / 64] |= 1 << UInt64(name[0] % 64)
        }
        self.doors = doors
        self.names = Array(names)
        self.beginnings = beginnings
    }

    package func mayMean(_ path: Span<UInt8>) -> Bool {
        guard !doors.isEmpty, isWorthReading(path) else { return false }
        for door in doors where path.matches(door.path.span) { return true }
        let loose = LoosePath(path)
        return doors.contains { loose.isAt(or: $0.loose) }
    }

    /// Whether a door's last segment begins a segment of the path, or escapes might hide one.
    private func isWorthReading(_ path: Span<UInt8>) -> Bool {
        var isStart = true
        for index in 0..<path.count {
            let byte = path[index]
            if byte == UInt8(ascii: "%") || byte >= 0x80 { return true }
            if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") {
                isStart = true
            } else if isStart {
                isStart = false
                let first = ASCII.lowercased(byte)
                if beginnings[Int(first) / 64] & 1 << UInt64(first % 64) != 0,
                    isName(at: path.extracting(index...))
                {
                    return true
                }
            }
        }
        return false
    }

    private func isName(at text: Span<UInt8>) -> Bool {
        for name in names where name.count <= text.count {
            var length = 0
            while length < name.count, ASCII.lowercased(text[length]) == name[length] { length += 1 }
            if length == name.count { return true }
        }
        return false
    }
}
