import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Requests in the name of an app version alone, without a signed-in account. If the authority's signed
/// response says that the clock is wrong, the client corrects it and sends the request again. Source:
/// docs/protocol.md, "Time".
package struct ReleaseCalls: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment
    private let logOutTransport: (any Transport)?

    /// `loggingOutOver` is the transport of pending log-outs if it differs from the requests'.
    package init(
        _ installation: Installation, environment: ClientEnvironment,
        loggingOutOver other: (any Transport)? = nil
    ) {
        self.installation = installation
        self.environment = environment
        logOutTransport = other
    }

    /// A server that answered is then told, in the background, of the sessions that ended here while it could
    /// not be reached.
    package func send(
        _ draft: Draft, body: BodyUse = .repeatable
    ) async throws(ClientOperationError) -> VerifiedResponse {
        let answer = try await sendTwice(draft, body: body)
        if environment.keeper.hasPendingLogOuts { sendLogOuts() }
        return answer
    }

    private func sendLogOuts() {
        var telling = environment
        if let logOutTransport { telling.transport = logOutTransport }
        PendingLogOuts(installation: installation, environment: telling).sendInBackground()
    }

    private func sendTwice(_ draft: Draft, body: BodyUse) async throws(ClientOperationError)
        -> VerifiedResponse
    {
        let first = try await sendOnce(draft)
        guard let told = first.notice?.timeTold else { return first }
        environment.correctClock(to: told)
        // A refusal concerns one copy. A party in between may have made the server execute another copy
        // before.
        guard draft.isRead || draft.isKeyed else { return first }
        guard !body.isUsedUp else { throw .bodyUsedUp }
        return try await sendOnce(draft)
    }

    /// The signed request as it would be sent now.
    package func signed(_ draft: Draft) throws(ClientOperationError) -> Draft {
        try SignedRequestSender(environment: environment).signed(
            draft, as: installation.release, at: environment.now())
    }

    private func sendOnce(_ draft: Draft) async throws(ClientOperationError) -> VerifiedResponse {
        let time = try environment.now()
        let verified = try await SignedRequestSender(environment: environment).send(
            draft, as: installation.release, at: time, authority: installation.authorityKeys)
        environment.confirm(time, by: verified)
        return verified
    }
}
