import CountersignTestKit
import CountersignWire

extension ConformanceCase {
    static let certificates: [ConformanceCase] = [
        ConformanceCase(
            "unknown-certificate", section: "Pins",
            requirement: "A server whose certificate's key is not pinned gets no byte of a request."
        ) { (trial) throws(CaseFailure) in try refuse(trial.certificates.stranger, in: trial) },
        ConformanceCase(
            "pinned-key-for-another-host", section: "Pins",
            requirement:
                "A certificate that signs itself is refused where it is for another host, though its key is "
                + "pinned."
        ) { (trial) throws(CaseFailure) in try refuse(trial.certificates.otherHost, in: trial) },
        ConformanceCase(
            "pinned-key-expired", section: "Pins",
            requirement:
                "A certificate that signs itself is refused where its dates are past, though its key is "
                + "pinned."
        ) { (trial) throws(CaseFailure) in try refuse(trial.certificates.expired, in: trial) },
        ConformanceCase(
            "backup-pin", section: "Pins",
            requirement: "A server that changes to the key of the backup pin is called as before."
        ) { (trial) throws(CaseFailure) in
            let port = try trial.signedInPort()
            try trial.show(trial.certificates.backup)
            let result: CaseFailure?
            do throws(CaseFailure) {
                try trial.call(port)
                try port.done("refresh")
                try trial.call(port)
                result = nil
            } catch {
                result = error
            }
            try trial.show(trial.certificates.current)
            if let result { throw result }
        },
    ]

    private static func refuse(_ certificate: Issued, in trial: Trial) throws(CaseFailure) {
        let port = try trial.signedInPort()
        try trial.show(certificate)
        let reply: Port.Reply
        do throws(CaseFailure) {
            reply = try trial.tryCall(port)
        } catch {
            try trial.show(trial.certificates.current)
            throw error
        }
        try trial.show(trial.certificates.current)
        try trial.expect(
            trial.front.exchanges.isEmpty, that: "Nothing is sent to such a server.",
            observed: "the port sends \(trial.sent)")
        try trial.expectFailure(reply, that: "The call fails.")
        try trial.expectState(port, is: "signed-in", that: "A server that is not trusted ends no session.")
        try trial.call(port)
    }
}
