import Countersign
import CountersignWire

extension Command {
    static let logOut = Command(
        words: ["logout"], summary: "end the session of this machine",
        options: [
            ClientDesk.profileOption,
            .flag(
                "local", "forget the session here, though the server may not be told: there it goes on until it is idle"
            ),
            .json,
        ]
    ) { (run) throws(Fault) in
        let desk = try ClientDesk(run)
        if run.arguments.has("local") {
            try desk.perform { (client) throws(CountersignError) in try await client.forgetSession() }
            try run.print(["profile": .string(desk.name), "signed_in": false, "server_told": false]) {
                "forgotten here; the server was not told"
            }
            return .success
        }
        let state = try desk.perform { (client) throws(CountersignError) in
            try await client.logOut()
            return client.state
        }
        try run.print(["profile": .string(desk.name), "signed_in": false, "server_told": true]) {
            guard case .signedOut(.ended(let end)) = state, end.how != .signedOut else { return "signed out" }
            return "signed out; the session had ended: \(ClientDesk.reason(end))"
        }
        return .success
    }
}
