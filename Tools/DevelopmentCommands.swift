import CountersignCLI
import CountersignLab
import CountersignServer
import CountersignWire
import Glibc

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
    static func installed() throws(LabError) -> CountersignBinary {
        let binary = try CountersignBinary()
        guard access(binary.path, X_OK) == 0 else {
            throw LabError("\(binary.path): no such program; the package countersign-cli contains it")
        }
        return binary
    }
}
