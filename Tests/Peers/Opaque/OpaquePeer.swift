import CountersignOpaque
import CountersignSeal
import CountersignWire
import Glibc

/// One side of OPAQUE, or both, with at most one registration and one login in progress on each. The test sends
/// lines of hexadecimal on standard input; each is answered by one line, `ok …` or `refused …`.
struct OpaquePeer: ~Copyable {
    private var keys: ServerKeys
    private var registration: ClientRegistration?
    private var clientLogin: ClientLogin?
    private var serverLogin: ServerLogin?
    // What Rust's opaque-ke does where it is told of neither names nor context.
    private let parties = Parties(client: .publicKey, server: .publicKey)
    private let context = LoginContext.empty

    init() throws {
        keys = try ServerKeys.random()
    }

    static func run() throws {
        var peer = try OpaquePeer()
        while let line = readLine() {
            let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            do {
                print("ok", try peer.answer(words[0], HexWords(words.dropFirst())).joined(separator: " "))
            } catch let error as OpaqueError {
                print("refused", error)
            } catch {
                print("broken", error)
            }
            fflush(nil)
        }
    }

    private mutating func answer(_ command: String, _ arguments: HexWords) throws -> [String] {
        switch command {
        case "keys":
            let read = try ServerKeys(arguments.secret(0))
            guard let read else { throw Misuse.noKeys }
            keys = read
            return []
        case "server-key": return [encode(keys.publicKey.bytes)]
        case "server-register":
            let request = try RegistrationRequest(arguments.bytes(1))
            return [encode(try keys.respond(to: request, credential: arguments.bytes(0)).bytes)]
        case "server-login":
            // An empty record: there is no such account.
            let stored = try arguments.secret(1)
            let record = stored.count == 0 ? keys.fakeRecord : try RegistrationRecord(stored)
            let login = try ServerLogin(
                KE1(arguments.bytes(2)), record: record, credential: arguments.bytes(0), as: parties,
                context: context, keys: keys)
            let message = encode(login.ke2.bytes)
            serverLogin = consume login
            return [message]
        case "server-finish":
            let ke3 = try KE3(arguments.bytes(0))
            guard let login = serverLogin.take() else { throw Misuse.nothingBegun }
            return [encode(try login.finish(ke3))]
        case "bench":
            let (known, unknown) = try LoginCost.serverNanoseconds()
            return [String(known), String(unknown)]
        default: return try answerAsClient(command, arguments)
        }
    }

    private mutating func answerAsClient(_ command: String, _ arguments: HexWords) throws -> [String] {
        switch command {
        case "client-register":
            let begun = try ClientRegistration(arguments.password(0))
            let message = encode(begun.request.bytes)
            registration = consume begun
            return [message]
        case "client-register-finish":
            let response = try RegistrationResponse(arguments.bytes(0))
            guard let begun = registration.take() else { throw Misuse.nothingBegun }
            let done = try begun.finish(response, as: parties, stretching: .standard)
            return [encode(done.record.bytes), encode(done.exportKey), encode(done.serverPublicKey.bytes)]
        case "client-login":
            let begun = try ClientLogin(arguments.password(0))
            let message = encode(begun.ke1.bytes)
            clientLogin = consume begun
            return [message]
        case "client-login-finish":
            let ke2 = try KE2(arguments.bytes(0))
            guard let begun = clientLogin.take() else { throw Misuse.nothingBegun }
            let done = try begun.finish(ke2, as: parties, context: context, stretching: .standard)
            return [
                encode(done.ke3.bytes), encode(done.sessionKey), encode(done.exportKey),
                encode(done.serverPublicKey.bytes),
            ]
        default: throw Misuse.noSuchCommand
        }
    }

    private func encode(_ bytes: [UInt8]) -> String { Hex.encode(bytes.span) }

    private func encode(_ secret: Secret) -> String { secret.withExposedBytes { Hex.encode($0) } }
}

/// The test's own mistakes.
enum Misuse: Error { case noSuchCommand, noSuchArgument, noKeys, noPassword, nothingBegun }

/// Words in hexadecimal.
struct HexWords {
    private let words: [String]

    init(_ words: some Sequence<String>) { self.words = Array(words) }

    func bytes(_ index: Int) throws -> [UInt8] {
        guard index < words.count, let bytes = Hex.decode(words[index]) else { throw Misuse.noSuchArgument }
        return bytes
    }

    func secret(_ index: Int) throws -> Secret {
        let bytes = try bytes(index)
        return Secret(copying: bytes.span)
    }

    func password(_ index: Int) throws -> Password {
        guard let password = Password(try secret(index)) else { throw Misuse.noPassword }
        return password
    }
}
