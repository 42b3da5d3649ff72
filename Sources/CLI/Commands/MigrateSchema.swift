import CountersignAuthority
import CountersignServer
import CountersignWire

extension Invocation {
    /// Brings the deployment's store to this build's level, or with `--check` tells what that would do.
    func migrateSchema(_ configuration: Configuration) throws(OperationalError) -> ExitStatus {
        guard arguments.has("check") else {
            let outcome = try configuration.upgradeSchema(environment: environment.variables)
            try print(outcome.json) { outcome.text }
            return .success
        }
        let plan = try configuration.schemaPlan(environment: environment.variables)
        try print(plan.json) { plan.text }
        return plan.hindering.isEmpty ? .success : .failed
    }

    /// Says that opening the deployment has migrated its store, for commands and servers that do so by the
    /// way.
    func noteMigration(_ outcome: SchemaOutcome) {
        if let backup = outcome.backup { console.note("the store was migrated; its backup is \(backup)") }
    }
}

extension SchemaPlan.Step {
    fileprivate var kindText: String {
        switch kind {
        case .expanding(let oldest): "expanding (builds of level \(oldest) and later go on)"
        case .contracting: "contracting"
        }
    }

    fileprivate var json: JSONValue {
        [
            "level": .integer(level), "name": .string(name),
            "kind": .string(kind == .contracting ? "contracting" : "expanding"),
            "oldest_level": .integer(oldestLevel),
        ]
    }
}

extension SchemaPlan {
    fileprivate var json: JSONValue {
        [
            "level": .integer(level), "target": .integer(target), "pending": .array(pending.map(\.json)),
            "hindering": .array(
                hindering.map {
                    ["id": .string($0.id), "name": .string($0.name), "level": .integer($0.level)]
                }),
            "backup": .bool(isBackedUp),
        ]
    }

    fileprivate var text: String {
        var lines = ["the store is of level \(level) of the schema, and this build of level \(target)"]
        guard !pending.isEmpty else { return (lines + ["nothing to do"]).joined(separator: "\n") }
        lines.append(
            Table.text(
                head: ["LEVEL", "MIGRATION", "KIND"],
                rows: pending.map { ["\($0.level)", $0.name, $0.kindText] }))
        if isBackedUp { lines.append("the file is copied first, beside it") }
        if !hindering.isEmpty {
            let names = hindering.map { "\($0.name) (level \($0.level))" }.joined(separator: ", ")
            lines.append("refused while these nodes are live: \(names)")
        }
        return lines.joined(separator: "\n")
    }
}

extension SchemaOutcome {
    fileprivate var json: JSONValue {
        ["done": .array(done.map(\.json)), "backup": .optional(backup)]
    }

    fileprivate var text: String {
        guard !done.isEmpty else { return "nothing to do" }
        var lines = done.map { "level \($0.level): \($0.name)" }
        if let backup { lines.append("the file of before is \(backup)") }
        return lines.joined(separator: "\n")
    }
}
