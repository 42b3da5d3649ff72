import CountersignSeal

/// How the client stretches the OPRF's output, so that who steals the server's secrets pays for each guess. Both ends of a
/// deployment keep to one, for as long as the records live. Source: RFC 9807 §7, §10.8.
package struct KeyStretching: Sendable {
    private enum Function { case argon2id(Argon2id), identity }

    private let function: Function

    /// 19 MiB, two passes, one lane.
    package static let standard = KeyStretching(function: .argon2id(.standard))

    /// `memory` in KiB. Nil for values libsodium cannot do: `lanes` other than 1, a salt that is not 16 bytes, less than 8
    /// KiB.
    package static func argon2id(memory: Int, passes: Int, lanes: Int, salt: [UInt8]) -> KeyStretching? {
        Argon2id(memory: memory, passes: passes, lanes: lanes, salt: salt)
            .map { KeyStretching(function: .argon2id($0)) }
    }

    /// None at all. The RFC's vectors have it; a record made with it can be guessed a million times a second by who has the
    /// server's secrets, so nothing outside this module and its tests sees it.
    static let noneForTheVectorsOfTheStandardOnly = KeyStretching(function: .identity)

    /// 64 bytes of 64.
    func stretch(_ output: Secret) throws(CryptographyFault) -> Secret {
        switch function {
        case .argon2id(let function): try function.hash(output, count: output.count)
        case .identity: output
        }
    }
}
