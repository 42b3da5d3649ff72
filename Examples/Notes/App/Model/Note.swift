/// One note, as the backend stores it.
struct Note: Codable, Hashable, Identifiable, Sendable {
    let id: Int
    let text: String
}

/// The body of a request for a new note.
struct NewNote: Codable, Sendable {
    let text: String
}
