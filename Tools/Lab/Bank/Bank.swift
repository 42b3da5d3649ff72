import CountersignSeal
import CountersignWire
import Glibc

/// The account balances that attackers try to change, in an SQLite file that no attack can read.
package final class Bank: Sendable {
    /// The balance of a new account.
    package static let openingBalance = 1_000

    /// A completed transfer.
    package struct Entry: Sendable, Equatable {
        package var id: Int64
        /// Whole Unix seconds.
        package var time: Int64
        package var from: String
        package var to: String
        package var amount: Int
        /// The payer's note; empty without one.
        package var note: String
    }

    /// The result of a transfer order.
    package enum TransferResult: Sendable, Equatable {
        case moved(Int)
        /// With the reason for the payer.
        case refused(String)
    }

    private let database: LabDatabase

    /// Creates the file in `folder`, or opens an existing one.
    package init(folder: String) throws(LabError) {
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

    /// A new account with ``openingBalance`` and a card number. `userID` is the number by which the server in
    /// front identifies the holder.
    package func open(name: String, userID: Int64) throws(LabError) {
        try database.query(
            "INSERT INTO accounts(name, user, balance, card) VALUES(?, ?, ?, ?)", binding: .text(name),
            .integer(userID),
            .integer(Int64(Bank.openingBalance)), .text(Bank.newCard()))
    }

    /// Throws where there is no such account.
    package func balance(of name: String) throws(LabError) -> Int {
        let row = try database.query("SELECT balance FROM accounts WHERE name = ?", binding: .text(name))
            .first
        guard let balance = row?[0].integer else { throw LabError("the bank has no account of \(name)") }
        return Int(balance)
    }

    /// The card number `card 4929 …`, which only the holder receives, with the balance. Throws where there is
    /// no such account.
    package func cardNumber(of name: String) throws(LabError) -> String {
        let row = try database.query("SELECT card FROM accounts WHERE name = ?", binding: .text(name)).first
        guard let card = row?[0].text else { throw LabError("the bank has no account of \(name)") }
        return card
    }

    /// The name of the account with a user id; nil if no account has it.
    private func holder(of userID: Int64) throws(LabError) -> String? {
        try database.query("SELECT name FROM accounts WHERE user = ?", binding: .integer(userID)).first?[0]
            .text
    }

    /// The name of the holder that a value of `Countersign-Account` names; nil for a value without a type, or
    /// with an unknown user id. Source: docs/protocol.md, "To the upstream".
    package func holder(_ account: String) throws(LabError) -> String? {
        if account.hasPrefix("id:") {
            guard let userID = Int64(account.dropFirst(3)) else { return nil }
            return try holder(of: userID)
        }
        guard account.hasPrefix("name:") else { return nil }
        let bytes = Array(account.utf8.dropFirst(5))
        return String(decoding: Form.lenientlyDecoded(bytes.span), as: UTF8.self)
    }

    /// Carries out the whole order or none of it. Refuses overdrafts, amounts that are no whole number over
    /// zero, and payees without account.
    package func transfer(
        _ amount: Int, from payer: String, to payee: String, note: String = ""
    ) throws(LabError) -> TransferResult {
        try database.transaction { (bank) throws(LabError) -> TransferResult in
            guard amount > 0 else { return .refused("amount: expected a whole number over 0") }
            func balance(_ name: String) throws(LabError) -> Int64? {
                try bank.query("SELECT balance FROM accounts WHERE name = ?", binding: .text(name)).first?[0]
                    .integer
            }
            guard let funds = try balance(payer) else { return .refused("no account of \(payer)") }
            guard try balance(payee) != nil else { return .refused("to: no account of \(payee)") }
            guard funds >= Int64(amount) else { return .refused("amount: more than there is") }
            for (change, name) in [(-amount, payer), (amount, payee)] {
                try bank.query(
                    "UPDATE accounts SET balance = balance + ? WHERE name = ?",
                    binding: .integer(Int64(change)), .text(name))
            }
            try bank.query(
                "INSERT INTO journal(time, payer, payee, amount, note) VALUES(?, ?, ?, ?, ?)",
                binding: .integer(Int64(time(nil))), .text(payer), .text(payee), .integer(Int64(amount)),
                .text(note))
            return .moved(amount)
        }
    }

    /// All transfers, the oldest first.
    package func journal() throws(LabError) -> [Entry] {
        try database.query("SELECT id, time, payer, payee, amount, note FROM journal ORDER BY id").map {
            row in
            Entry(
                id: row[0].integer ?? 0, time: row[1].integer ?? 0, from: row[2].text ?? "",
                to: row[3].text ?? "",
                amount: Int(row[4].integer ?? 0), note: row[5].text ?? "")
        }
    }

    private static func newCard() -> String {
        let digits = SystemRandom().bytes(12).map { String($0 % 10) }
        let groups = stride(from: 0, to: 12, by: 4).map { digits[$0..<$0 + 4].joined() }
        return "card 4929 \(groups.joined(separator: " "))"
    }
}

/// The bank's responses to requests whose account a server or gateway has determined.
package enum BankRoutes {
    /// `POST /transfer` with `to`, `amount` and optionally `note`: `{"moved":N}`. `GET /balance`:
    /// `{"balance":N,"card":"…"}`. Otherwise 4xx with `{"reason":"…"}`. Only the end of the path counts, and
    /// `/transfer` accepts any method, as in many backends.
    package static func respond(
        to request: RawRequest, parameters: LenientParameters, for holder: String, at bank: Bank
    ) throws(LabError) -> RawResponse {
        if request.path.hasSuffix("/transfer") {
            let result = try bank.transfer(
                parameters.number("amount"), from: holder, to: parameters["to"] ?? "",
                note: parameters["note"] ?? "")
            switch result {
            case .moved(let amount): return RawResponse(json: ["moved": .integer(Int64(amount))])
            case .refused(let reason): return RawResponse(400, json: ["reason": .string(reason)])
            }
        }
        guard request.path.hasSuffix("/balance") else {
            return RawResponse(404, json: ["reason": "no such page"])
        }
        return RawResponse(json: [
            "balance": .integer(Int64(try bank.balance(of: holder))),
            "card": .string(try bank.cardNumber(of: holder)),
        ])
    }
}

extension RawResponse {
    /// A JSON response.
    package init(_ status: Int = 200, json: JSONValue) {
        self.init(status, fields: [("Content-Type", "application/json")], body: Array(json.text.utf8))
    }
}
