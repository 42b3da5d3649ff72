import CountersignCLI
import CountersignLab
import CountersignWire
import Glibc

Tool.runProcess(commands: DevelopmentCommand.commands)

extension DevelopmentCommand {
    /// What this program runs, as `countersign` lists it.
    static let commands: [Command] =
        [
            .selfTest, .conformance, .benchStore, .benchReplay, .benchLogin, .benchVerdict, .benchFill,
            .benchClients, .bench, .labLast, .lab,
        ] + Tool.common
}

extension CountersignBinary {
    /// The gateway's program, in the folder of this one.
    static func installed() throws(OperationalError) -> CountersignBinary {
        try existing("countersign", source: "the package countersign-cli contains it")
    }

    /// The gateway with planted faults, in the folder of this program.
    static func breakable() throws(OperationalError) -> CountersignBinary {
        try existing(
            "countersign-breakable", source: "no package contains it; `script/lab --broken` builds it")
    }

    private static func existing(
        _ name: String, source: String
    ) throws(OperationalError) -> CountersignBinary {
        let binary: CountersignBinary
        do {
            binary = try CountersignBinary(besideThisProgram: name)
        } catch {
            throw OperationalError(.failed, message: error.description)
        }
        guard access(binary.path, X_OK) == 0 else {
            throw OperationalError(.failed, message: "\(binary.path): no such program; \(source)")
        }
        return binary
    }
}
