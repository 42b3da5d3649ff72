import CountersignSeal
import CountersignWire
import Glibc

/// Balances behind the servers: what an attacker is after. In an SQLite file of its own, which no attacker has.
package final class Bank: Sendable {
    /// What lies on a new account.
    package static let opening = 1_000

    /// A transfer that was made.
    package struct Entry: Sendable, Equatable {
        package var id: Int64
        /// Whole Unix seconds.
        package var time: Int64
        package var from: String
        package var to: String
        package var amount: Int
        /// What the payer wrote; empty where nothing.
        package var note: String
    }

    /// What became of an order.
    package enum TransferResult: Sendable, Equatable {
        case moved(Int)
        /// With the reason, for the payer.
        case refused(String)
    }

    private let database: LabDatabase

    /// Makes the file in `folder`, or opens the one that is there.
    package init(folder: String) throws(StageFault) {
        database = try LabDatabase(
            path: "\(folder)/bank.db",
            schema: """
                CREATE TABLE IF NOT EXISTS accounts(
                    name TEXT PRIMARY KEY, user INTEGER UNIQUE, balance INTEGER NOT NULL, card TEXT NOT NULL);
                CREATE TABLE IF NOT EXISTS journal(
                    id INTEGER PRIMARY KEY, time INTEGER NOT NULL, payer TEXT NOT NULL, payee TEXT NOT NULL,
                    amount INTEGER NOT NULL, note TEXT NOT NULL);
                """)
    }

    /// A new account with ``opening`` on it and a card of its own. `userID` is what the server in front calls its holder.
    package func open(name: String, userID: Int64) throws(StageFault) {
        try database.rows(
            "INSERT INTO accounts(name, user, balance, card) VALUES(?, ?, ?, ?)", .text(name), .integer(userID),
            .integer(Int64(Bank.opening)), .text(Bank.newCard()))
    }

    /// Throws where there is no such account.
    package func balance(of name: String) throws(StageFault) -> Int {
        let row = try database.rows("SELECT balance FROM accounts WHERE name = ?", .text(name)).first
        guard let balance = row?[0].integer else { throw StageFault("the bank has no account of \(name)") }
        return Int(balance)
    }

    /// What only the holder is told, with the balance: `card 4929 …`. Throws where there is no such account.
    package func secret(of name: String) throws(StageFault) -> String {
        let row = try database.rows("SELECT card FROM accounts WHERE name = ?", .text(name)).first
        guard let card = row?[0].text else { throw StageFault("the bank has no account of \(name)") }
        return card
    }

    /// Whose account a user id is; nil where nobody's.
    package func holder(_ userID: Int64) throws(StageFault) -> String? {
        try database.rows("SELECT name FROM accounts WHERE user = ?", .integer(userID)).first?[0].text
    }

    /// The whole order or nothing of it. No overdraft, nothing but whole amounts over zero, no payee without an account.
    package func transfer(
        _ amount: Int, from payer: String, to payee: String, note: String = ""
    ) throws(StageFault) -> TransferResult {
        try database.transaction { (bank) throws(StageFault) -> TransferResult in
            guard amount > 0 else { return .refused("amount: expected a whole number over 0") }
            func balance(_ name: String) throws(StageFault) -> Int64? {
                try bank.rows("SELECT balance FROM accounts WHERE name = ?", .text(name)).first?[0].integer
            }
            guard let funds = try balance(payer) else { return .refused("no account of \(payer)") }
            guard try balance(payee) != nil else { return .refused("to: no account of \(payee)") }
            guard funds >= Int64(amount) else { return .refused("amount: more than there is") }
            for (change, name) in [(-amount, payer), (amount, payee)] {
                try bank.rows(
                    "UPDATE accounts SET balance = balance + ? WHERE name = ?", .integer(Int64(change)), .text(name))
            }
            try bank.rows(
                "INSERT INTO journal(time, payer, payee, amount, note) VALUES(?, ?, ?, ?, ?)",
                .integer(Int64(time(nil))), .text(payer), .text(payee), .integer(Int64(amount)), .text(note))
            return .moved(amount)
        }
    }

    /// All transfers, the oldest first.
    package func journal() throws(StageFault) -> [Entry] {
        try database.rows("SELECT id, time, payer, payee, amount, note FROM journal ORDER BY id").map { row in
            Entry(
                id: row[0].integer ?? 0, time: row[1].integer ?? 0, from: row[2].text ?? "", to: row[3].text ?? "",
                amount: Int(row[4].integer ?? 0), note: row[5].text ?? "")
        }
    }

    private static func newCard() -> String {
        let digits = SystemRandom().bytes(12).map { String($0 % 10) }
        let groups = stride(from: 0, to: 12, by: 4).map { digits[$0..<$0 + 4].joined() }
        return "card 4929 \(groups.joined(separator: " "))"
    }
}
