import CountersignSeal
import Testing

@testable import CountersignOpaque

/// Every bit of every message counts: none can be flipped on the way without the login being refused.
@Suite struct TamperingTests {
    private func flipping(_ bit: Int, of kind: MessageKind) -> Ceremony.Wire {
        { current, bytes in
            guard current == kind else { return bytes }
            var bytes = bytes
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            return bytes
        }
    }

    @Test("no bit of a login's messages", arguments: [MessageKind.ke1, .ke2, .ke3])
    func login(_ kind: MessageKind) throws {
        let ceremony = try Ceremony(password: Array("correct horse".utf8))
        let record = try ceremony.register().record
        var seen: Set<OpaqueError> = []
        for bit in 0..<kind.count * 8 {
            seen.insert(try #require(try ceremony.refusal(record, flipping(bit, of: kind)), "bit \(bit)"))
        }
        let expected: Set<OpaqueError> =
            switch kind {
            case .ke3: [.clientNotAuthenticated]
            default: [.malformed(kind), .wrongPassword, .serverNotAuthenticated]
            }
        #expect(seen == expected)
    }

    @Test(
        "no bit of a registration's messages",
        arguments: [
            MessageKind.registrationRequest, .registrationResponse, .registrationRecord,
        ])
    func registration(_ kind: MessageKind) throws {
        let ceremony = try Ceremony(password: Array("correct horse".utf8))
        let honest = try ceremony.register()
        var seen: Set<OpaqueError> = []
        for bit in 0..<kind.count * 8 {
            let wire = flipping(bit, of: kind)
            do {
                let registered = try kind == .registrationRecord ? honest : ceremony.register(wire)
                let record = try ceremony.stored(registered, wire)
                seen.insert(try #require(try ceremony.refusal(record), "bit \(bit)"))
            } catch let refusal as OpaqueError {
                seen.insert(refusal)
            }
        }
        let others: Set<OpaqueError> =
            kind == .registrationRecord ? [.wrongPassword, .serverNotAuthenticated] : [.wrongPassword]
        #expect(seen == others.union([.malformed(kind)]))
    }

    @Test("a message of another length, or with a point that is none", arguments: MessageKind.allCases)
    func malformed(_ kind: MessageKind) throws {
        let ceremony = try Ceremony(password: [])
        var messages: [MessageKind: [UInt8]] = [:]
        let record = try ceremony.stored(
            ceremony.register {
                messages[$0] = $1
                return $1
            }
        ) {
            messages[$0] = $1
            return $1
        }
        _ = try ceremony.logIn(record) {
            messages[$0] = $1
            return $1
        }
        let honest = try #require(messages[kind])
        #expect(honest.count == kind.count)
        #expect(try parse(kind, honest) == honest)
        var bad = [[], Array(honest.dropLast()), honest + [0], honest + honest]
        for start in kind.points {
            for point in [
                [UInt8](repeating: 0, count: 32), [UInt8](repeating: 0xFF, count: 32),
                [1] + [UInt8](repeating: 0, count: 31),
            ] {
                bad.append(Array(honest[..<start]) + point + Array(honest[(start + 32)...]))
            }
        }
        for bytes in bad {
            #expect(throws: OpaqueError.malformed(kind)) { try parse(kind, bytes) }
        }
    }

    /// What is read, written again.
    private func parse(_ kind: MessageKind, _ bytes: [UInt8]) throws(OpaqueError) -> [UInt8] {
        switch kind {
        case .registrationRequest: try RegistrationRequest(bytes).bytes
        case .registrationResponse: try RegistrationResponse(bytes).bytes
        case .registrationRecord: try RegistrationRecord(Secret(copying: bytes.span)).bytes.exposed
        case .ke1: try KE1(bytes).bytes
        case .ke2: try KE2(bytes).bytes
        case .ke3: try KE3(bytes).bytes
        }
    }
}

extension MessageKind {
    /// Where its points begin.
    fileprivate var points: [Int] {
        switch self {
        case .registrationRequest, .registrationRecord: [0]
        case .registrationResponse: [0, 32]
        case .ke1: [0, 64]
        case .ke2: [0, 224]
        case .ke3: []
        }
    }
}
