import CountersignAuthority
import CountersignWire

/// What became of an import.
struct ImportReport {
    /// Refused lines that are listed in it; of the others there is the number.
    static let mostListed = 10_000

    let isDry: Bool
    var taken = 0
    var present = 0
    private(set) var refused = 0
    private var listed: [ImportProblem] = []
    var seconds = 0.0

    init(isDry: Bool) { self.isDry = isDry }

    mutating func refuse(_ problem: ImportProblem) {
        refused += 1
        if listed.count < ImportReport.mostListed { listed.append(problem) }
    }

    var text: String {
        let verb = isDry ? "would take" : "took"
        let rate = seconds > 0 ? Int(Double(taken + present + refused) / seconds) : 0
        let pace = "\(ImportProgress.text(seconds)), \(rate) rows/s"
        return "\(verb) \(taken), already there \(present), refused \(refused); \(pace)"
    }

    var json: JSONValue {
        [
            "dry_run": .bool(isDry), "taken": .integer(Int64(taken)), "present": .integer(Int64(present)),
            "refused": .integer(Int64(refused)), "seconds": .decimal(seconds),
            "problems": .array(
                listed.map {
                    [
                        "line": .integer(Int64($0.line)), "column": .optional($0.column?.rawValue),
                        "reason": .string($0.reason),
                    ]
                }),
        ]
    }
}
