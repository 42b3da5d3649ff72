extension Craft {
    /// Mostly one.
    package func logins(name: String, password: String, key: AppKey) -> [RawRequest] {
        [login(name: name, password: password, key: key)].compactMap(\.self)
    }

    /// Mostly what is kept is what is sent.
    package func login(stored: CapturedLogin, key: AppKey) -> RawRequest? { login(stored, key: key) }

    /// By writing a whole login and reading it.
    package func value(of password: String, name: String, key: AppKey) -> String? {
        guard let request = login(name: name, password: password, key: key) else { return nil }
        return login(in: RawExchange(request: request, response: nil))?.value
    }
}
