import CountersignAuthority
import CountersignWire

extension Command {
    static let rotateMasterKey = Command(
        words: ["rotate-master-key"],
        summary: "replace the master key, under running servers, and seal everything under the new one",
        options: [
            .flag(
                "force",
                meaning: "give up values that open under neither key, because their rows were altered"),
            .data, .json,
        ],
        notes: """
            Killed at any point, it goes on where it was when it is run again. Servers on the same data \
            folder take the new key without a restart. Where several nodes share a database, the first run \
            makes `master.key.next` and names the nodes that do not have it: copy it to their data folders, \
            and run the command again. The former key opens nothing of the store \
            afterwards; backups made before stay sealed under it. If the former key has leaked, this is one \
            step of several: docs/operate/master-key.md.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let line = RotationProgressLine(run.console)
        let outcome = try MasterKeyRotation(of: deployment).run(
            unopened: run.arguments.has("force") ? .giveUp : .keep
        ) {
            line.show($0)
        }
        line.end()
        try run.print(outcome.json) { outcome.text }
        return .success
    }
}

/// A line on a terminal with the progress of a rotation; nothing if there is no terminal.
private final class RotationProgressLine {
    private let console: Console
    private var total: Int64 = 0

    init(_ console: Console) { self.console = console }

    func show(_ stage: MasterKeyRotation.Stage) {
        switch stage {
        case .began(let isContinued, let values):
            total = values
            if isContinued { console.note("going on with a rotation that was interrupted") }
        case .sealed(let count):
            guard console.isErrorTerminal else { return }
            console.replaceLine("\(count) of about \(max(total, count)) values sealed again")
        }
    }

    func end() { if console.isErrorTerminal { console.replaceLine("") } }
}

extension MasterKeyRotation.Outcome {
    fileprivate var json: JSONValue {
        [
            "key": .string(current), "former_key": .optional(former), "sealed": .integer(sealed),
            "left": .integer(left), "key_to_move": .optional(keyToMove),
        ]
    }

    fileprivate var text: String {
        var lines: [String] = []
        if let former {
            lines.append("master key \(former) is replaced by \(current): \(sealed) values sealed again")
        } else if keyToMove == nil {
            lines.append(
                "the rotation to master key \(current) is finished now; run this again for another key")
        } else {
            lines.append("the rotation to master key \(current) is done, apart from this:")
        }
        if left > 0 {
            lines.append(
                "\(left) values opened under neither key and are given up: their rows were altered or "
                    + "moved (countersign audit verify)")
        }
        if let keyToMove {
            lines.append(
                "\(keyToMove) holds the new key. Give it to the servers where they have the former "
                    + "one from (\(MasterKeySource.variable), or the credential countersign-master-key), "
                    + "stop and start them, and run this command with the new key: it removes the file")
        }
        return lines.joined(separator: "\n")
    }
}
