import CountersignWire

/// What a run should find: `Vectors/lab/matrix.json`. Of the shape that `lab --json` prints; only verdicts count.
package struct ExpectedMatrix: Sendable {
    package private(set) var rows: [RowName: [AttackName: Verdict]] = [:]

    package init(reading bytes: [UInt8]) throws(MalformedExpectation) {
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes)
        } catch {
            throw MalformedExpectation(description: "not JSON: \(error)")
        }
        guard let list = document.root["rows"]?.elements else {
            throw MalformedExpectation(description: "no list `rows`")
        }
        for row in list {
            guard let scheme = row["scheme"]?.string, let cells = row["cells"]?.members else {
                throw MalformedExpectation(description: "a row without `scheme` or `cells`")
            }
            guard rows[RowName(scheme)] == nil else {
                throw MalformedExpectation(description: "row `\(scheme)` stands there twice")
            }
            var verdicts: [AttackName: Verdict] = [:]
            for cell in cells {
                guard let text = cell.value["verdict"]?.string, let verdict = Verdict(rawValue: text) else {
                    throw MalformedExpectation(
                        description: "row `\(scheme)`, attack `\(cell.name)`: expected a verdict H, F or –")
                }
                verdicts[AttackName(cell.name)] = verdict
            }
            rows[RowName(scheme)] = verdicts
        }
    }

    /// All in which the run differs from what was expected, in the order of the table. What was not selected is not looked for; what is in
    /// no catalogue any more is.
    package func differences(
        from matrix: Matrix, rows knownRows: [RowName] = RowCatalogue.all.map(\.name),
        attacks knownAttacks: [AttackName] = AttackCatalogue.all.map(\.name)
    ) -> [Difference] {
        var differences: [Difference] = []
        for row in matrix.rows {
            for attack in matrix.attacks.map(\.name) {
                let kind = Difference.Kind(expected: rows[row.name]?[attack], got: row.cells[attack])
                if let kind { differences.append(Difference(row: row.name, attack: attack, kind: kind)) }
            }
        }
        for (row, cells) in rows.sorted(by: { $0.key.description < $1.key.description }) {
            for attack in cells.keys.sorted(by: { $0.description < $1.description })
            where !knownRows.contains(row) || !knownAttacks.contains(attack) {
                differences.append(Difference(row: row, attack: attack, kind: .gone))
            }
        }
        return differences
    }

    /// One cell that is not as expected.
    package struct Difference: Sendable, Equatable, CustomStringConvertible {
        package enum Kind: Sendable, Equatable {
            case differs(expected: Verdict, got: Verdict, how: String)
            /// Whatever was expected: it is no verdict.
            case notStaged(String)
            /// The file says nothing of it.
            case unexpected(got: Verdict, how: String)
            /// The file tells of a row or an attack that there is not.
            case gone

            /// Nil where both are the same.
            fileprivate init?(expected: Verdict?, got: Result<Cell, StageFault>?) {
                switch (expected, got) {
                case (_, nil): self = .notStaged("was not run")
                case (_, .failure(let fault)): self = .notStaged(fault.description)
                case (nil, .success(let cell)): self = .unexpected(got: cell.verdict, how: cell.how)
                case (let expected?, .success(let cell)):
                    guard expected != cell.verdict else { return nil }
                    self = .differs(expected: expected, got: cell.verdict, how: cell.how)
                }
            }
        }

        package let row: RowName
        package let attack: AttackName
        package let kind: Kind

        package var description: String {
            let place = "\(row) \(attack)"
            return switch kind {
            case .differs(let expected, let got, let how):
                "\(place): expected \(expected.rawValue), got \(got.rawValue): \(how)"
            case .notStaged(let why): "\(place): could not be staged: \(why)"
            case .unexpected(let got, let how): "\(place): not in the expectation; got \(got.rawValue): \(how)"
            case .gone: "\(place): expected, but there is no such cell"
            }
        }
    }
}

/// Why a file is no expectation.
package struct MalformedExpectation: Error, Sendable, CustomStringConvertible {
    package let description: String
}
