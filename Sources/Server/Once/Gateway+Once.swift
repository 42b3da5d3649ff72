import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

extension Gateway {
    /// To the backend once, however many copies come; later ones get the answer of the first.
    func passOnce(
        _ keyed: IdempotentRequest, _ exchange: any Exchange, _ request: Request, from caller: Caller,
        _ judgement: Judgement, _ event: EventID
    ) async throws(Refusal) {
        switch try await once.begin(keyed) {
        case .again(.whole(let status, let fields, let body)):
            var answer = Answer(status: status, fields: fields, body: body).telling(caller)
            answer.fields.append(Answer.Field("Countersign-Replayed", "true"))
            await exchange.respond(signed(answer, to: exchange, judgement))
        case .again(.long(let status)):
            throw Refusal(
                .unavailable, "Idempotency-Key: done before with status \(status); its answer was too long to be kept",
                done: status)
        case .ours:
            let recorder = AnswerRecorder(keeping: once.mostKept)
            let result: Result<Void, Refusal>
            do throws(Refusal) {
                result = .success(try await send(exchange, request, from: caller, judgement, event, recorder))
            } catch {
                result = .failure(error)
            }
            await once.end(keyed, recorder.outcome)
            try result.get()
        }
    }
}

extension Answer {
    /// One that was kept.
    fileprivate init(status: Int, fields: [StoredAnswer.Field], body: [UInt8]) {
        self.init(status: status, type: "", body: body)
        self.fields = fields.map { Field($0.name, String(decoding: $0.value, as: UTF8.self)) }
    }
}
