/// Passwords as people choose them.
package struct WordList: Sendable {
    package let all: [String]
}
