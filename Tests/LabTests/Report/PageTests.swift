import CountersignLab
import CountersignWire
import Testing

@Suite struct PageTests {
    private static func page(_ steps: [AttackStep], how: String = "moved") -> String {
        let cell = Result<Cell, LabError>.success(Cell(.fell, how: how, steps: steps))
        return MatrixPage(
            SampleMatrix.report([SampleMatrix.row("md5", [cell])], Array(SampleMatrix.attacks.prefix(1)))
        )
        .html
    }

    @Test(
        "what came off a wire stays text",
        arguments: ["<script>alert(1)</script>", "\" onclick=\"x", "</pre><img src=x>", "'&amp;"])
    func escaped(_ hostile: String) {
        let page = Self.page(
            [AttackStep(.attacker, action: "sends \(hostile)", showing: "GET /\(hostile) HTTP/1.1\r\n\r\n")],
            how: hostile)
        #expect(!page.contains(hostile))
        let spelled = hostile.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
            ">", with: "&gt;"
        )
        .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
        #expect(page.contains("<pre>GET /\(spelled) HTTP/1.1\n\n</pre>"))
        #expect(page.contains("sends \(spelled)</p>"))
        #expect(page.contains("<span class=\"how\">\(spelled)</span>"))
    }

    @Test func controlCharactersAreWrittenOut() {
        let page = Self.page([
            AttackStep(.victim, action: "signs in", showing: "a\0b\u{1B}[c\rd\r\ne\u{202E}")
        ])
        #expect(page.contains("<pre>a\\u0000b\\u001b[c\\u000dd\ne\\u202e</pre>"))
        #expect(page.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control })
    }

    @Test func needsNothingElse() {
        let page = MatrixPage(SampleMatrix.mixed).html
        for word in ["<script", "<link", "src=", "url(", "@import", "http://", "https://"] {
            #expect(!page.contains(word), "\(word)")
        }
        #expect(page.contains("Content-Security-Policy\" content=\"default-src 'none'"))
    }

    @Test func everyLinkLeadsSomewhere() throws {
        let page = MatrixPage(SampleMatrix.mixed).html
        let links = page.matches(of: #/href="#([^"]*)"/#).map { String($0.1) }
        let anchors = page.matches(of: #/ id="([^"]*)"/#).map { String($0.1) }
        // Three rows of three columns and of four attacks, the rows' names in both tables, and back from each
        // row.
        #expect(links.count == 3 * (3 + 4) + 3 * 2 + 3)
        #expect(Set(links).isSubset(of: Set(anchors)))
        #expect(Set(anchors).count == anchors.count)
    }

    @Test func lettersAndCountsAreThere() {
        let page = MatrixPage(SampleMatrix.mixed).html
        #expect(
            page.contains(
                """
                <td class=\"error\"><a href=\"#md5+gateway/tamper\" aria-label=\"md5+gateway, tamper: not \
                staged\">!</a></td>
                """
            ))
        #expect(page.contains("<dt>attacks carried out</dt><dd>10</dd>"))
        #expect(page.contains("on 2026-05-01T12:30:00Z"))
        #expect(page.contains("the server did not start"))
    }

    @Test func longStoriesAreCutAndSaySo() {
        let text = String(repeating: "é", count: 4_000)
        let page = Self.page(
            (1...1_000).map {
                AttackStep(.attacker, action: "tries word \($0)", showing: $0 == 2 ? text : nil)
            })
        #expect(page.contains("960 more such steps, left out here"))
        #expect(page.contains("tries word 30<") && !page.contains("tries word 31<"))
        #expect(
            !page.contains("tries word 990<") && page.contains("tries word 991<")
                && page.contains("tries word 1000<"))
        #expect(page.contains("cut here: 5000 bytes more"))
        #expect(!page.contains("\u{FFFD}"))
    }
}
