/// A server's own database, as the field has it: passwords in the form in which they come, tokens as they are.
struct FieldDatabase: Sendable {
    let file: LabDatabase

    init(path: String) throws(StageFault) {
        file = try LabDatabase(
            path: path,
            schema: """
                CREATE TABLE IF NOT EXISTS users(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, password TEXT NOT NULL);
                CREATE TABLE IF NOT EXISTS tokens(
                    user INTEGER PRIMARY KEY, token TEXT NOT NULL, expires INTEGER NOT NULL, login_token TEXT NOT NULL);
                """)
    }

    struct User: Sendable {
        var id: Int64
        var name: String
        var password: String
    }

    func add(_ user: User) throws(StageFault) {
        try file.rows(
            "INSERT INTO users(id, name, password) VALUES(?, ?, ?)", .integer(user.id), .text(user.name),
            .text(user.password))
    }

    func user(_ name: String) throws(StageFault) -> User? {
        try file.rows("SELECT id, name, password FROM users WHERE name = ?", .text(name)).first.map(FieldDatabase.user)
    }

    func user(_ id: Int64) throws(StageFault) -> User? {
        try file.rows("SELECT id, name, password FROM users WHERE id = ?", .integer(id)).first.map(FieldDatabase.user)
    }

    /// The one query that so many logins are: an unknown name and a wrong password look alike.
    func user(_ name: String, keptPassword: String) throws(StageFault) -> User? {
        try file.rows(
            "SELECT id, name, password FROM users WHERE name = ? AND password = ?", .text(name), .text(keptPassword)
        ).first.map(FieldDatabase.user)
    }

    private static func user(_ row: [LabDatabase.Value]) -> User {
        User(id: row[0].integer ?? 0, name: row[1].text ?? "", password: row[2].text ?? "")
    }
}
