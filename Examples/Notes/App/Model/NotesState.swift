/// Everything that the app shows. A view reads it, and changes nothing in it.
struct NotesState: Hashable, Sendable {
    enum Screen: Hashable, Sendable {
        /// The session on this device has not been read yet, or cannot be read now.
        case waiting
        /// Nobody is signed in. `notice` says how the last session ended.
        case login(notice: String?)
        /// The session is kept, and a person has to unlock it.
        case locked
        /// Somebody is signed in.
        case home(account: String)
        /// The server no longer serves this version of the app.
        case updateRequired(url: String?)
    }

    var screen = Screen.waiting
    var notes: [Note] = []
    /// What went wrong last, for the person who uses the app.
    var message: String?
    /// Whether a request or another action is under way.
    var isBusy = false
}
