import CountersignSeal
import CountersignWire

extension Rung {
    /// What a client of this rung sends: `username` and `password`, in the query where its door is a GET, else in a form body. Escaped,
    /// which clients in the field do not do, and every server understands. `value` is ``LoginLadder/sent(_:on:_:at:)``'s.
    package func request(
        _ username: String, _ value: Secret, path: String? = nil, authority: String, transport: Request.Transport
    ) -> Draft {
        var form: [UInt8] = []
        Form.append("username", Array(username.utf8).span, to: &form)
        value.withExposedBytes { Form.append("password", $0, to: &form) }
        var draft = Draft(
            method: door.method, target: Array((path ?? door.path).utf8), authority: authority, transport: transport)
        draft.attach(form, to: door.method == "GET" ? .query : .body)
        return draft
    }
}
