import Countersign

/// What an answer says of a version that will go. No more than a hint: to a backend's answer anybody in between can add it.
enum UpdateHint {
    static func show(_ response: APIResponse, _ run: Invocation) {
        guard let text = response.value(of: "countersign-update"),
            // It goes to a terminal.
            text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return }
        let parts = text.split(separator: ", ").map { part in
            guard part.hasPrefix("at="), let time = Moment.unixSeconds(String(part.dropFirst(3))) else {
                return String(part)
            }
            return "at=\(Moment.text(time))"
        }
        run.console.note("note: this version of the app will go (\(parts.joined(separator: ", ")))")
    }
}
