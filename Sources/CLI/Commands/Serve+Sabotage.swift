#if SABOTAGE
    import CountersignGate
    import CountersignWire

    extension Option {
        static let sabotage = list(
            "sabotage", "NAME[,NAME]",
            "have these faults, for the lab and tests; `list` lists them. In debug builds alone")
    }

    extension Invocation {
        /// Each fault with what it means, a line each.
        func listFaults() throws(Fault) -> ExitStatus {
            try console.print(Table.text(["NAME", "MEANING"], Sabotage.allCases.map { [$0.rawValue, $0.meaning] }))
            return .success
        }

        /// Gives the process the faults that were asked for, and says so where nobody can miss it.
        func sabotage() throws(Fault) {
            var faults: [Sabotage] = []
            for name in arguments.values("sabotage").flatMap({
                $0.split(separator: ",", omittingEmptySubsequences: false)
            }) {
                guard let fault = Sabotage(rawValue: String(name)) else {
                    let known = Sabotage.allCases.map(\.rawValue).joined(separator: ", ")
                    throw Fault(.usage, "--sabotage `\(name)`: expected one of \(known)")
                }
                faults.append(fault)
            }
            guard !faults.isEmpty else { return }
            Sabotage.choose(faults)
            console.note("SABOTAGED: \(faults.map(\.rawValue).joined(separator: ", ")): never serve with this")
        }
    }
#endif
