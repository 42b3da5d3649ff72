/// How much a text looks like what signs in: a server looks at few guesses, so the likeliest go first.
enum PasswordLikeness: CaseIterable {
    /// Short enough that somebody types it.
    case typed
    /// As long as the usual hashes and their encodings.
    case hash
    case long

    init(_ text: String) {
        switch text.utf8.count {
        case ..<32: self = .typed
        case ...64: self = .hash
        default: self = .long
        }
    }
}
