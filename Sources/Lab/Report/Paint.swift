/// Colours on a terminal, none in a file. The letters say the same.
package struct Paint: Sendable {
    package enum Style: Sendable { case plain, coloured }

    private let style: Style

    package init(_ style: Style) { self.style = style }

    func callAsFunction(_ mark: Mark) -> String { callAsFunction(mark.rawValue, as: mark) }

    func callAsFunction(_ text: String, as mark: Mark) -> String {
        switch mark {
        case .fell: wrap(text, "1;31")
        case .notStaged: wrap(text, "1;33")
        case .held: wrap(text, "32")
        case .notApplicable: wrap(text, "2")
        }
    }

    func heading(_ text: String) -> String { wrap(text, "1") }

    func dim(_ text: String) -> String { wrap(text, "2") }

    private func wrap(_ text: String, _ code: String) -> String {
        style == .plain ? text : "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }
}
