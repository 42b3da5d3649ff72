/// Passwords as people choose them.
package struct WordList: Sendable {
    package let all: [String]

    /// One of them.
    func random() -> String { all.randomElement() ?? "" }
}
