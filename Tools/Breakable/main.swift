import CountersignCLI
import CountersignFaults
import CountersignHTTP
import CountersignWire

// `countersign-breakable`: every command of `countersign`, with a server that can be started with planted
// faults. The lab and the tests attack it. No package contains it. Source: decision 0031.

Tool.runProcess(commands: Tool.commands.map(\.breakable))

extension Command {
    /// The same command; `serve` and `migrate` with the option `--sabotage`, `serve` also with
    /// `--tasks-alone`.
    fileprivate var breakable: Command {
        guard [["serve"], ["migrate"]].contains(words) else { return self }
        var command = self
        command.options += words == ["serve"] ? [.sabotage, .tasksAlone] : [.sabotage]
        command.run = { [sound = self.run] (run) throws(OperationalError) in
            if run.arguments.values("sabotage") == ["list"] { return try run.listFaults() }
            var run = run
            run.composition = FaultyComposition(
                try run.plantedFaults(),
                servingPath: run.arguments.has("tasks-alone") ? .suspending : .immediate)
            return try sound(run)
        }
        return command
    }
}

extension Option {
    fileprivate static let sabotage = list(
        "sabotage", placeholder: "NAME[,NAME]",
        meaning: "start with these faults, for the lab and tests; `list` lists them")
    fileprivate static let tasksAlone = flag(
        "tasks-alone", meaning: "serve every request by a task, for tests that compare both paths")
}

extension Invocation {
    /// Each fault with what it means, a line each.
    fileprivate func listFaults() throws(OperationalError) -> ExitStatus {
        try console.print(
            Table.text(
                head: ["NAME", "MEANING"], rows: Sabotage.allCases.map { [$0.rawValue, $0.meaning] }))
        return .success
    }

    /// Reads the requested faults, and prints a conspicuous warning that names them.
    fileprivate func plantedFaults() throws(OperationalError) -> [Sabotage] {
        var faults: [Sabotage] = []
        for name in arguments.values("sabotage").flatMap({
            $0.split(separator: ",", omittingEmptySubsequences: false)
        }) {
            guard let fault = Sabotage(rawValue: String(name)) else {
                let known = Sabotage.allCases.map(\.rawValue).joined(separator: ", ")
                throw OperationalError(.usage, message: "--sabotage `\(name)`: expected one of \(known)")
            }
            faults.append(fault)
        }
        guard !faults.isEmpty else { return [] }
        console.note("SABOTAGED: \(faults.map(\.rawValue).joined(separator: ", ")): never serve with this")
        return faults
    }
}
