import Countersign

/// What an answer says of a version that will go. No more than a hint: to a backend's answer anybody in between can add it.
enum UpdateHint {
    static func show(_ response: APIResponse, _ run: Invocation) {
        guard let text = response.value(of: "countersign-update"),
            // It goes to a terminal.
            text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return }
        run.console.note("note: this version of the app will go (\(text))")
    }
}
