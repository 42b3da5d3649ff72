import CountersignWire

/// The expected verdicts, `Vectors/lab/matrix.json`, in the format that `lab --json` prints. Only verdicts
/// are compared.
package struct ExpectedMatrix: Sendable {
    package private(set) var rows: [RowName: [AttackName: AttackVerdict]] = [:]

    package init(reading bytes: [UInt8]) throws(LabError) {
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes)
        } catch {
            throw LabError("not JSON: \(error)")
        }
        guard let list = document.root["rows"]?.elements else {
            throw LabError("no list `rows`")
        }
        for row in list {
            guard let scheme = row["scheme"]?.string, let cells = row["cells"]?.members else {
                throw LabError("a row without `scheme` or `cells`")
            }
            guard rows[RowName(scheme)] == nil else {
                throw LabError("row `\(scheme)` stands there twice")
            }
            var verdicts: [AttackName: AttackVerdict] = [:]
            for cell in cells {
                guard let text = cell.value["verdict"]?.string, let verdict = AttackVerdict(rawValue: text)
                else {
                    throw LabError("row `\(scheme)`, attack `\(cell.name)`: expected a verdict H, F or –")
                }
                verdicts[AttackName(cell.name)] = verdict
            }
            rows[RowName(scheme)] = verdicts
        }
    }

    /// All differences between the run and the expectation, in the order of the table. Cells that were not
    /// selected are skipped; cells that are in no catalogue any more are reported.
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

    /// A cell that differs from the expectation.
    package struct Difference: Sendable, Equatable, CustomStringConvertible {
        package enum Kind: Sendable, Equatable {
            case differs(expected: AttackVerdict, got: AttackVerdict, how: String)
            /// The cell has no verdict, which always differs.
            case notStaged(String)
            /// The file has no entry for the cell.
            case unexpected(got: AttackVerdict, how: String)
            /// The file has an entry for a row or an attack that does not exist.
            case gone

            /// Nil where the two are equal.
            fileprivate init?(expected: AttackVerdict?, got: Result<Cell, LabError>?) {
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
            case .unexpected(let got, let how):
                "\(place): not in the expectation; got \(got.rawValue): \(how)"
            case .gone: "\(place): expected, but there is no such cell"
            }
        }
    }
}
