import CountersignOpaque

/// OPAQUE's first steps, which fail only where the machine's library does.
enum Blinding {
    static func login(_ password: Password) throws(ClientProblem) -> ClientLogin {
        do {
            return try ClientLogin(password)
        } catch {
            throw .machine("the password cannot be blinded")
        }
    }

    static func registration(_ password: Password) throws(ClientProblem) -> ClientRegistration {
        do {
            return try ClientRegistration(password)
        } catch {
            throw .machine("the password cannot be blinded")
        }
    }
}
