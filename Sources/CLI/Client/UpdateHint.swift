import CountersignWire

/// What an answer says of a version that will go. No more than a hint: to a backend's answer anybody in between can add it.
enum UpdateHint {
    static func show(_ response: Response, _ run: Invocation) {
        let message = response.message
        guard let field = message.value(of: "countersign-update"),
            // It goes to a terminal.
            message.head[field.range].allSatisfy({ (0x20...0x7E).contains($0) })
        else { return }
        run.console.note("note: this version of the app will go (\(message.text(field)))")
    }
}
