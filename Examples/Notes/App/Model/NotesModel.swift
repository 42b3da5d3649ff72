import Countersign

/// The app without its views: what is shown, and what a person can do. The views and the command-line program
/// use the same model.
@MainActor
final class NotesModel {
    private(set) var state = NotesState() {
        didSet { if state != oldValue { onChange(state) } }
    }
    /// Called after each change of `state`.
    var onChange: (NotesState) -> Void = { _ in }

    private let client: CountersignClient
    /// The client's state that `state` shows.
    private var shown: CountersignState?
    /// The session whose notes are in `state`.
    private var session: String?
    private var actionsUnderWay = 0

    init(client: CountersignClient) { self.client = client }

    /// To be called at launch. Signs in silently where a session is kept on this device, and shows each state
    /// of the client until the task is cancelled.
    func run() async {
        async let launched: Void = retry()
        // The newest state is shown: the one that was announced may have been followed by another.
        for await _ in client.states { showClientState() }
        await launched
    }

    /// Reads the session on this device, and asks the server about it.
    func retry() async {
        begin()
        await client.resume()
        finish()
    }

    /// Makes an account, and signs in with it.
    func signUp(name: String, password: String) async {
        begin()
        do {
            try await client.signUp(name, password)
            try await client.logIn(name, password)
            finish()
        } catch {
            finish(error)
        }
    }

    func logIn(name: String, password: String) async {
        begin()
        do {
            try await client.logIn(name, password)
            finish()
        } catch {
            finish(error)
        }
    }

    /// Asks for Face ID, Touch ID or the passcode. Where the person cannot or does not want to, the login
    /// screen follows.
    func unlock() async {
        begin()
        do {
            try await client.unlock("Open your notes")
            finish()
        } catch {
            finish(error)
            if case .notPresent(.loginPage) = error { state.screen = .login(notice: nil) }
        }
    }

    func refresh() async {
        begin()
        await load()
    }

    /// Returns whether the note was stored: the view keeps the text otherwise.
    @discardableResult
    func add(_ text: String) async -> Bool {
        begin()
        let session = session
        do {
            // The client gives the request an idempotency key: where an answer is lost, it sends the request
            // again, and the note is stored once.
            let note: Note = try await client.value(for: .json(.post, "/notes", NewNote(text: text)))
            // Meanwhile another account may have signed in.
            if session == self.session { state.notes.append(note) }
            finish()
            return true
        } catch {
            finish(error)
            return false
        }
    }

    /// Ends the session on this device, and at the server as soon as it can be reached.
    func logOut() async {
        begin()
        do {
            try await client.logOut()
            finish()
        } catch {
            finish(error)
        }
    }

    /// Goes on with a version that the server serves only in part. The server may ask for the update again.
    func continueDespiteUpdate() {
        client.continueDespiteUpdate()
        showClientState()
    }

    // MARK: -

    private func load() async {
        let session = session
        do {
            let notes: [Note] = try await client.value(for: APIRequest("/notes"))
            if session == self.session { state.notes = notes }
            finish()
        } catch {
            finish(error)
        }
    }

    private func begin() {
        actionsUnderWay += 1
        state.isBusy = true
        state.message = nil
    }

    private func finish(_ error: CountersignError? = nil) {
        // The client changes its state before its call returns.
        showClientState()
        actionsUnderWay -= 1
        var next = state
        next.isBusy = actionsUnderWay > 0
        if let error { next.message = Messages.text(for: error) }
        state = next
    }

    private func showClientState() {
        let current = client.state
        guard current != shown else { return }
        shown = current
        var next = state
        switch current {
        case .unavailable:
            next.screen = .waiting
        case .locked:
            next.screen = .locked
        case .updateRequired(let url):
            next.screen = .updateRequired(url: url)
        case .signedOut(let reason):
            session = nil
            next.notes = []
            next.screen = .login(notice: Messages.notice(for: reason))
        case .active(let account):
            next.screen = .home(account: account.name)
            if account.session != session {
                session = account.session
                next.notes = []
                actionsUnderWay += 1
                next.isBusy = true
                Task { await load() }
            }
        }
        state = next
    }
}
