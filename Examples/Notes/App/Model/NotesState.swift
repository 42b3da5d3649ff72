/// Everything that the app shows. A view reads it, and changes nothing in it.
struct NotesState: Hashable, Sendable {
    enum Screen: Hashable, Sendable {
        /// The session on this device has not been read yet, or cannot be read now.
        case waiting
        /// No account is signed in. `notice` says how the last session ended.
        case login(notice: String?)
        /// The session is stored, and the user must unlock it.
        case locked
        /// The account is signed in.
        case home(account: String)
        /// The server no longer serves this version of the app.
        case updateRequired(url: String?)
    }

    var screen = Screen.waiting
    var notes: [Note] = []
    /// The last error, in words for the user.
    var message: String?
    /// Whether a request or another action is under way.
    var isBusy = false
}
