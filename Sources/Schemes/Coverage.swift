/// What a scheme's signatures cover and what they leave open, as data: the lab attacks what is listed here, the tests
/// change one after the other, the documentation prints it.
package struct Coverage: Sendable, Equatable {
    /// A part of a request that an attacker might change.
    package enum Part: String, Sendable, CaseIterable {
        case method
        case authority
        /// `http` or `https`.
        case transport
        case path
        case query
        case body
        /// Order and percent-encoding of parameters, and the `=` of an empty one.
        case querySpelling = "spelling of the query"
        /// Fields that the signature names.
        case namedFields = "fields the signature names"
        /// White space in them, and whether their values came in one line or several.
        case fieldSpelling = "spelling of named fields"
        /// Whether a named field's values came in one line, joined by commas, or in several.
        case fieldLines = "lines of named fields"
        /// Whether a path without a query is followed by `?`.
        case emptyQuery = "empty query"
        /// Fields that it does not name.
        case otherFields = "other fields"
        /// Creation time, nonce, key id and whatever else the scheme signs about the signature itself.
        case signatureParameters = "signature parameters"
        /// Names and values of form parameters.
        case formParameters = "form parameters"
        /// How those are written: order, percent-encoding, `+` for a space.
        case formSpelling = "spelling of form parameters"
        /// Names and values of a JSON body's outermost members, the containers among these as they are written.
        case jsonMembers = "members of a JSON body"
        /// How those are written: order, white space, escapes, and the type of a value.
        case jsonSpelling = "spelling of a JSON body"
    }

    package var covered: [Part]
    package var uncovered: [Part]
    /// What is known to be wrong with the scheme itself, one sentence each.
    package var weaknesses: [String]

    package init(covered: [Part], uncovered: [Part], weaknesses: [String] = []) {
        self.covered = covered
        self.uncovered = uncovered
        self.weaknesses = weaknesses
    }
}
