import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The client's half of OPAQUE's end: by the server's answer it knows that the server has the account's record, and proves in turn
/// that it knows the password. Good for one purpose. Source: docs/protocol.md, "Login".
struct PasswordProof {
    let keys: LoginKeys
    private let binding: LoginBinding
    private let loginID: [UInt8]
    private let messages: (ke1: [UInt8], ke2: [UInt8], ke3: [UInt8])

    /// `answer` has `login_id` and `ke2`. Throws ``ClientProblem/wrongCredentials`` where the password does not fit, and where
    /// the answer was changed on the way: OPAQUE does not let the two be told apart.
    init(
        _ login: consuming ClientLogin, _ answer: AnswerBody, _ binding: LoginBinding, stretching: KeyStretching
    ) throws(ClientProblem) {
        loginID = try answer.bytes("login_id")
        let bytes = try answer.bytes("ke2", count: MessageKind.ke2.count)
        guard let parties = binding.parties, let context = binding.context else {
            throw .notUnderstood("the app's name is empty")
        }
        let ke1 = login.ke1.bytes
        let ke2: KE2
        do {
            ke2 = try KE2(bytes)
        } catch {
            throw answer.missing("ke2", "a message of OPAQUE's")
        }
        let loggedIn: ClientLogin.LoggedIn
        do {
            loggedIn = try login.finish(ke2, as: parties, context: context, stretching: stretching)
        } catch {
            switch error {
            case .refused: throw .wrongCredentials
            case .fault: throw .machine("the password cannot be stretched; it takes 19 MiB of memory")
            }
        }
        keys = LoginKeys(sessionKey: loggedIn.sessionKey)
        self.binding = binding
        messages = (ke1, bytes, loggedIn.ke3.bytes)
    }

    /// What a finish sends.
    struct Signed {
        let members: [(name: String, value: JSONValue)]
    }

    /// `more` is what the purpose binds besides.
    func signed(
        _ purpose: LoginBinding.Purpose, by device: any DeviceSigner, more: [[UInt8]] = []
    ) throws(ClientProblem) -> Signed {
        let transcript = binding.finishTranscript(
            purpose, loginID: loginID, ke1: messages.ke1, ke2: messages.ke2, ke3: messages.ke3, more: more)
        let signature = try device.sign(transcript)
        let mac = keys.finish.authenticate((transcript + signature).span)
        return Signed(members: [
            ("login_id", .bytes(loginID)), ("ke3", .bytes(messages.ke3)), ("signature", .bytes(signature)),
            ("mac", .bytes(mac.indices.map { mac[$0] })),
        ])
    }
}
