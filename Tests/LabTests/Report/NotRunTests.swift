import CountersignWire
import Foundation
import Testing

@testable import CountersignLab

/// Every report lists and counts rows whose server is not installed as not run, with the reason, and gives
/// them no verdict.
@Suite struct NotRunTests {
    private static func found() async throws -> Matrix {
        var settings = LabSettings(binary: try CountersignBinary(), jobs: 1)
        settings.nginx = nil
        let rows = RowCatalogue.all.filter { $0.server == .nginxAsking }
        return await Lab(settings: settings).run(rows: rows, attacks: SampleMatrix.attacks) { _ in }
    }

    @Test func rowsOfNginxAreNotRunWithoutIt() async throws {
        let matrix = try await Self.found()
        #expect(matrix.rows.isEmpty && matrix.faults.isEmpty)
        #expect(matrix.notRun.map(\.name) == ["message-signatures-decide-no-tls", "countersign-decide"])
        #expect(matrix.notRun.allSatisfy { $0.reason == Nginx.absence })
        #expect(matrix.tally.rowsNotRun == 2)
        #expect(try ExpectedMatrix(reading: Array(#"{"rows":[]}"#.utf8)).differences(from: matrix).isEmpty)
    }

    @Test func everyReportSaysSo() async throws {
        var report = SampleMatrix.mixed
        report.matrix.notRun = Array(try await Self.found().notRun.suffix(1))
        let text = MatrixText(report, style: .plain).text
        #expect(text.contains("not run\n  countersign-decide: \(Nginx.absence)\n"))
        #expect(text.contains("; 1 row was not run. "))
        let listed = try #require(JSONReader.read(Array(report.json.text.utf8)).root["not_run"]?.elements)
        #expect(listed.map { $0["scheme"]?.string } == ["countersign-decide"])
        #expect(listed.map { $0["reason"]?.string } == [Nginx.absence])
        let page = MatrixPage(report).html
        #expect(page.contains("<code>countersign-decide</code> was not run: \(Nginx.absence)"))
        #expect(page.contains("<dt>rows not run</dt><dd>1</dd>"))
        #expect(!MatrixPage(SampleMatrix.mixed).html.contains("not run"))
        #expect(!MatrixText(SampleMatrix.mixed, style: .plain).text.contains("not run"))
    }

    @Test func nginxIsLookedForInPathAndWhereSystemsPutIt() throws {
        let folder = try newFolder()
        let program = "\(folder)/nginx"
        try Files.write([], to: program)
        #expect(Nginx.installed(path: folder) != program)
        chmod(program, 0o700)
        #expect(Nginx.installed(path: "/nowhere:\(folder)") == program)
    }
}
