import CountersignClient
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
            try desk.perform { (installation, surroundings) throws(ClientProblem) in
                try CountersignClient.LogOut(installation, surroundings).forgetHere()
            }
            try run.print(["profile": .string(desk.name), "signed_in": false, "server_told": false]) {
                "forgotten here; the server was not told"
            }
            return .success
        }
        let outcome = try desk.perform { (installation, surroundings) throws(ClientProblem) in
            try await CountersignClient.LogOut(installation, surroundings)()
        }
        try run.print(["profile": .string(desk.name), "signed_in": false, "server_told": true]) {
            switch outcome {
            case .signedOut: "signed out"
            case .hadEnded(let notice): "signed out; the session had ended: \(ClientDesk.reason(notice))"
            }
        }
        return .success
    }
}
