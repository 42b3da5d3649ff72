#if SABOTAGE
    import CountersignServer
    import CountersignWire

    extension Option {
        static let sabotage = list(
            "sabotage", placeholder: "NAME[,NAME]",
            meaning: "have these faults, for the lab and tests; `list` lists them. In debug builds alone")
    }

    extension Invocation {
        /// Each fault with what it means, a line each.
        func listFaults() throws(OperationalError) -> ExitStatus {
            try console.print(
                Table.text(
                    head: ["NAME", "MEANING"], rows: Sabotage.allCases.map { [$0.rawValue, $0.meaning] }))
            return .success
        }

        /// Reads the requested faults, and prints a conspicuous warning that names them.
        func plantedFaults() throws(OperationalError) -> [Sabotage] {
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
            console.note(
                "SABOTAGED: \(faults.map(\.rawValue).joined(separator: ", ")): never serve with this")
            return faults
        }
    }
#endif
