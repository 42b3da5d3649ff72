/// How the app is called at the authority: OPAQUE's name for the server, and so a part of every proof.
///
/// Where nobody said it, the start's answer does. Whoever lies about it makes the login fail and gains nothing: the release is
/// bound as well, and the name that the registration was made for cannot be changed after.
struct KnownApp {
    /// As the installation has it, or as it was learnt before.
    let name: String?

    init(_ installation: Installation, _ state: ClientState) { name = installation.app ?? state.app }

    /// The name to go by.
    func settled(by answer: AnswerBody) throws(ClientProblem) -> String {
        let told = answer.optionalText("app")
        switch (name, told) {
        case (let known?, nil): return known
        case (let known?, let told?):
            guard known.utf8.elementsEqual(told.utf8) else {
                throw .notGenuine("the server calls the app `\(told)`; expected `\(known)`")
            }
            return known
        case (nil, let told?) where !told.isEmpty: return told
        case (nil, _): throw .incomplete("the app's name is not known, and the server does not tell it")
        }
    }
}
