import CountersignTestKit

/// A port of the attacker's under a host name of his own. What comes in goes to the real server as it is: for an app that was led here, by
/// a link, a setting, a lying DNS.
package final class Door: Sendable {
    /// The attacker's host, for which he has a certificate.
    package let host: String
    package var port: UInt16 { entrance.number }
    private let entrance: PublicPort
    private let ledger = Ledger()

    init(_ host: String, side: TLSSide?, server: @escaping @Sendable () throws(NetworkProblem) -> RawClient) throws {
        self.host = host
        let man = ManInTheMiddle(side: side, server: server, ledger: ledger) { try? $1($0) }
        entrance = try PublicPort { man.serve($0) }
    }

    /// What came through.
    package var interposed: Interposed { ledger.interposed }

    package func stop() { entrance.stop() }
}
