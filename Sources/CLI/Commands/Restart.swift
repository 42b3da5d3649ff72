import CountersignAuthority
import CountersignServer
import CountersignWire
import Glibc

extension Command {
    static let restart = Command(
        words: ["restart"], summary: "replace the running server by a new process, without an outage",
        options: [.data, .json],
        notes: """
            The running server starts its program once more, from the same path and with the same arguments.
            The new process takes over the listening sockets, the replay table and the counts of login
            attempts; the old one answers the requests that it has, for no longer than --deadline-drain.
            Returns once the new one accepts connections. Where it cannot start, the old one goes on.
            `countersign serve --takeover` does the same from outside.
            """
    ) { (run) throws(Fault) in
        let folder = try DataFolder(run.configuration().data, absence: .isAFault)
        let successor = try Restart(folder).run()
        try run.print(["process": .integer(Int64(successor))]) { "process \(successor) serves now" }
        return .success
    }
}
