import CountersignLab
import CountersignWire
import Glibc

/// What the options of `lab` ask for, understood before anything is staged.
struct LabRequest {
    let selection: Selection
    let expected: ExpectedMatrix?
    let page: OutputFile?
    let document: OutputFile?

    init(_ run: Invocation) throws(Fault) {
        selection = try LabRequest.selection(run.arguments)
        expected = try run.arguments.value("expect").map { (path) throws(Fault) in try LabRequest.expected(path) }
        page = try run.arguments.value("html").map { (path) throws(Fault) in try OutputFile(path) }
        document = try run.arguments.value("save").map { (path) throws(Fault) in try OutputFile(path) }
    }

    /// Rows and attacks by their names.
    static func selection(_ arguments: Arguments) throws(Fault) -> Selection {
        do {
            return try Selection(rows: arguments.values("scheme"), attacks: arguments.values("attack"))
        } catch {
            let (option, what) = error.kind == .row ? ("scheme", "row") : ("attack", "attack, and no column,")
            let hint = Nearest.hint(error.word, among: error.known)
            throw Fault(
                .usage,
                "--\(option) `\(error.word)`: no such \(what) in the lab\(hint); there are \(error.known.joined(separator: ", "))"
            )
        }
    }

    /// How many rows are attacked side by side.
    static func jobs(_ arguments: Arguments) throws(Fault) -> Int {
        // Rows wait more than they compute.
        guard let text = arguments.value("jobs") else { return 2 * max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
        guard let jobs = Int(text), (1...64).contains(jobs) else {
            throw Fault(.usage, "--jobs `\(text)`: expected a number from 1 to 64")
        }
        return jobs
    }

    /// Gateways are this program again.
    static func settings(_ run: Invocation) throws(Fault) -> LabSettings {
        let (jobs, tools) = (try jobs(run.arguments), try tools(run.arguments))
        do throws(StageFault) {
            var settings = LabSettings(binary: try Binary(), jobs: jobs)
            settings.tools = tools
            return settings
        } catch {
            throw Fault(.failed, "lab: \(error)")
        }
    }

    /// With what attackers listen and interpose.
    static func tools(_ arguments: Arguments) throws(Fault) -> LabTools {
        do throws(LabTools.Problem) {
            return try LabTools(arguments.values("with"), path: getenv("PATH").map { String(cString: $0) } ?? "")
        } catch {
            switch error {
            case .unknown(let what): throw Fault(.usage, "--with: \(what)")
            case .missing(let what): throw Fault(.unreachable, "--with: \(what)")
            }
        }
    }

    private static func expected(_ path: String) throws(Fault) -> ExpectedMatrix {
        let bytes = try Console.readFile(path)
        do throws(MalformedExpectation) {
            return try ExpectedMatrix(reading: bytes)
        } catch {
            throw Fault(.usage, "--expect \(path): \(error)")
        }
    }
}
