#if SABOTAGE
    import CountersignWire

    /// What came of one fault.
    package struct BrokenFinding: Sendable {
        package enum Verdict: Sendable {
            /// The attack succeeded, and fails where the fault is not.
            case caught
            /// It failed all the same.
            case missed
            /// It succeeds without the fault, too, and so says nothing about it.
            case meaningless
            /// One of the two could not be staged.
            case unstaged
        }

        package let server: BrokenServer
        package let verdict: Verdict
        /// In a sentence: what the attacker got, or why that says nothing.
        package let how: String

        init(_ server: BrokenServer, broken: Result<Cell, StageFault>, whole: Result<Cell, StageFault>) {
            self.server = server
            switch (broken, whole) {
            case (.failure(let fault), _): (verdict, how) = (.unstaged, fault.description)
            case (_, .failure(let fault)): (verdict, how) = (.unstaged, "without the fault: \(fault)")
            case (.success(let cell), .success(let other)):
                switch (cell.verdict, other.verdict) {
                case (.fell, .held): (verdict, how) = (.caught, cell.how)
                case (.fell, _):
                    (verdict, how) = (.meaningless, "without the fault it is \(other.verdict.rawValue): \(other.how)")
                case (_, _): (verdict, how) = (.missed, cell.how)
                }
            }
        }
    }

    extension [BrokenFinding] {
        /// For people: fault, caught by, how.
        package var text: String {
            let width = map(\.server.fault.count).max() ?? 0
            let lines = map { finding in
                let server = finding.server
                let fault = server.fault + String(repeating: " ", count: width - server.fault.count)
                return "\(finding.verdict.mark) \(fault)  \(server.attack) on \(server.row): \(finding.how)"
            }
            let caught = count { $0.verdict == .caught }
            return (lines + ["\(caught) of \(count) broken servers caught"]).joined(separator: "\n")
        }

        /// `{"broken":[{"fault":…,"sentence":…,"scheme":…,"attack":…,"verdict":"caught","how":…}]}`
        package var json: JSONValue {
            .object([
                (
                    "broken",
                    .array(
                        map { finding in
                            .object([
                                ("fault", .string(finding.server.fault)),
                                ("sentence", .string(finding.server.sentence)),
                                ("scheme", .string(finding.server.row.description)),
                                ("attack", .string(finding.server.attack.description)),
                                ("verdict", .string("\(finding.verdict)")), ("how", .string(finding.how)),
                            ])
                        })
                )
            ])
        }
    }

    extension BrokenFinding.Verdict {
        fileprivate var mark: String { self == .caught ? "✓" : "✗" }
    }
#endif
