import CountersignLab
import CountersignWire
import Testing

@Suite struct JSONTests {
    @Test func theShapeThatOthersRead() throws {
        let document = try JSONReader.read(Array(SampleMatrix.mixed.json.prettyText.utf8))
        let rows = try #require(document.root["rows"]?.elements)
        #expect(rows.compactMap { $0["scheme"]?.string } == ["md5", "md5+gateway", "countersign"])
        let cells = try #require(rows[1]["cells"])
        #expect(cells.members?.map(\.name) == SampleMatrix.attacks.map(\.name.description))
        #expect(cells["eavesdrop"]?["verdict"]?.string == "H")
        #expect(cells["eavesdrop"]?["how"]?.string == "refused: replayed")
        #expect(cells["tamper-body"]?["verdict"]?.string == "!")
        #expect(cells["tamper-body"]?["how"]?.string == "the server did not start")
        #expect(rows[0]["cells"]?["replay-at-once"]?["verdict"]?.string == "–")
        #expect(document.root["attacks"]?.elements?[2]["column"]?.string == "tamper")
        #expect(document.root["tally"].map { document.text(of: $0) }?.contains("\"F\": 2") == true)
    }

    @Test func stepsAreTold() throws {
        let cell = Cell(
            .fell, how: "moved",
            steps: [
                AttackStep(.victim, action: "signs in", showing: "POST /\u{0}"),
                AttackStep(.server, action: "answers"),
            ])
        let report = SampleMatrix.report(
            [SampleMatrix.row("md5", [.success(cell)])], [SampleMatrix.attacks[0]])
        let document = try JSONReader.read(Array(report.json.text.utf8))
        let steps = document.root["rows"]?.elements?[0]["cells"]?["eavesdrop"]?["steps"]?.elements
        #expect(steps?.map { $0["actor"]?.string } == ["victim", "server"])
        #expect(steps?.first?["shown"]?.string == "POST /\u{0}")
        #expect(steps?.last?["shown"]?.kind == "null")
    }
}
