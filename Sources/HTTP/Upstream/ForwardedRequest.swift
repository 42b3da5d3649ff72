import CountersignWire

/// How a verified request is forwarded to the upstream.
package struct ForwardedRequest: ~Copyable {
    /// The request's fields to forward. Hop-by-hop fields and `Countersign-*` are never forwarded, even if
    /// they are in this mask.
    package var fields: FieldMask
    /// Field lines that the gateway adds to the request, each with its CRLF.
    package var added: [UInt8]
    /// Field lines that the gateway adds to the response, each with its CRLF.
    package var addedToAnswer: [UInt8] = []
    /// Whether the response's own `Access-Control-…` fields are removed.
    package var crossOriginFields = CrossOriginFields.passed
    /// For a streamed body: gets every byte, and decides before the last ones are sent.
    package var inspector: (any BodyInspector)?
    /// Gets the response, and learns whether the upstream may have processed the request.
    package var observer: (any UpstreamResponseObserver)?
    /// The party that waits for a connection; nil for the client's address.
    package var caller: UpstreamCaller?

    package init(fields: FieldMask, added: [UInt8], inspector: (any BodyInspector)? = nil) {
        self.fields = fields
        self.added = added
        self.inspector = inspector
    }
}

/// What becomes of the fields by which a response lets web pages read it. Source: Fetch Standard, "CORS
/// protocol".
package enum CrossOriginFields: Sendable {
    case passed
    /// The gateway decides about web pages: two answers in one response would allow what neither says.
    case removed
}

extension UpstreamResponse {
    mutating func removeCrossOriginFields() {
        var kept = passedOn
        for index in fields.indices where isCrossOrigin(fields[index]) { kept.remove(index) }
        passedOn = kept
    }

    private func isCrossOrigin(_ field: Request.Field) -> Bool {
        let beginning: StaticString = "access-control-"
        let length = beginning.utf8CodeUnitCount
        guard field.name.count > length else { return false }
        let name = head.span.extracting(field.name.range)
        return name.extracting(0..<length).matchesWithoutCase(beginning)
    }
}

/// Inspects a streamed body. Confined to the loop of its exchange.
package protocol BodyInspector: AnyObject {
    func inspect(_ bytes: Span<UInt8>)
    /// Called at the body's end, before the last bytes are sent.
    func finish() throws(Refusal)
}

extension ForwardedRequest {
    /// The fields of `request` that are forwarded: ``fields`` without hop-by-hop fields and those reserved
    /// for the gateway.
    @inline(__always) package func selected(of request: borrowing Request) -> FieldMask {
        var selected = FieldLines.passedOn(request.fields, except: request.hopByHopFields)
        selected.formIntersection(fields)
        return selected
    }

    /// Writes the request's head for the upstream: the same method and the same target bytes. `request` is
    /// not changed; as an `inout` argument, the connection's is read where it is.
    @inline(__always) func writeHead(of request: inout Request, to output: Buffer) {
        let head = request.head.span
        let fieldStart = Int(request.fields.first?.name.start ?? 0)
        let targetEnd = Int(request.target.end)
        // The request line as it came, if it is in the form that goes on.
        if request.minorVersion == 1, request.absoluteAuthority.isEmpty, request.method.start == 0,
            request.target.start == request.method.end + 1, fieldStart == targetEnd + 11
        {
            FieldLines.copy(request.fields, where: selected(of: request), of: head, from: 0, to: output)
        } else {
            func append(_ slice: ByteRange) {
                head.extracting(slice.range).withUnsafeBytes { _ = output.append($0) }
            }
            append(request.method)
            output.append(" ")
            append(request.target)
            output.append(" HTTP/1.1\r\n")
            FieldLines.copy(
                request.fields, where: selected(of: request), of: head, from: fieldStart, to: output)
        }
        output.append(added)
        switch (request.isBodyWhole, request.framing) {
        case (true, .none) where request.body.isEmpty: break
        case (true, _): output.appendLength(request.body.count)
        case (false, .length(let length)): output.appendLength(length)
        case (false, .none): break
        case (false, .chunked): output.append("Transfer-Encoding: chunked\r\n")
        }
        output.append("\r\n")
    }
}

/// The fields that end at this hop. Source: RFC 9110 §7.6.1.
enum HopByHop {
    /// The limit on members of all `Connection` fields of a head. Each member is compared with every field.
    static let mostMembers = 64

    /// The fields that `Connection` fields name. Both kinds of head hold at most 128
    /// fields.
    static func named(in fields: [Request.Field], of head: Span<UInt8>) throws(Refusal) -> FieldMask {
        var named = FieldMask()
        var count = 0
        for field in fields where field.known == .connection {
            var rest = field.value
            while let member = FieldLines.nextMember(of: &rest, in: head) {
                count += 1
                guard count <= mostMembers else {
                    throw Refusal(
                        .malformed, detail: "the Connection fields have more than \(mostMembers) members")
                }
                for index in fields.indices
                where FieldLines.equals(in: head, left: fields[index].name, right: member) {
                    named.insert(index)
                }
            }
        }
        return named
    }
}

extension Connection {
    func forward(_ forwarding: consuming ForwardedRequest, to pool: UpstreamPool) async throws(Refusal) {
        try await pool.forward(self, as: forwarding)
    }

    func forward(
        _ forwarding: consuming ForwardedRequest, to pool: UpstreamPool,
        reportingTo observer: any ForwardObserver
    ) {
        let party = pool.callerUsage(of: self, as: forwarding.caller)
        guard let exchange = spareExchange.take(), exchange.pool === pool else {
            return UpstreamExchange(connection: self, pool: pool, party: party, forwarding: forwarding)
                .start(reportingTo: observer)
        }
        exchange.renew(for: party, as: forwarding)
        exchange.start(reportingTo: observer)
    }
}

extension UpstreamPool {
    /// Implements ``Exchange/forward(_:to:)`` for a connection.
    func forward(_ connection: Connection, as forwarding: consuming ForwardedRequest) async throws(Refusal) {
        let party = callerUsage(of: connection, as: forwarding.caller)
        let relay = UpstreamExchange(connection: connection, pool: self, party: party, forwarding: forwarding)
        defer { relay.releaseFirstPart() }
        // A head alone costs a client little, so a client must send a first part of a streamed body before
        // it gets an upstream connection.
        if !connection.request.isBodyWhole { try await relay.receiveFirstPart() }
        try await run(relay, on: takeIdle(for: party, by: .socket))
    }

    /// Forwards the request of `relay`, from where it stands. `connection` is the upstream connection in use;
    /// nil if one must be waited for.
    func run(_ relay: UpstreamExchange, on connection: UpstreamConnection?) async throws(Refusal) {
        let party = relay.party
        var taken: UpstreamConnection
        if let connection {
            taken = connection
        } else {
            taken = try await reach(for: relay) { () throws(Refusal) in try await takeAnother(for: party) }
        }
        while true {
            do {
                relay.generation = taken.generation
                try await relay.run(on: taken.stream)
                return finish(taken, of: party, isReusable: relay.isReusable)
            } catch {
                guard taken.hasServed, relay.maySendAgain(after: error) else {
                    close(taken, of: party)
                    throw refusal(for: error, of: relay)
                }
                // The connection closed while it was idle. The request is sent again on a new connection,
                // which has not served a request and is not replaced again.
                let stale = taken
                taken = try await reach(for: relay) { () throws(Refusal) in
                    try await replace(stale, of: party)
                }
                relay.progress = .connected
            }
        }
    }

    /// Returns the connection that `connect` makes. If `connect` throws, the cause is recorded as the
    /// response's ``DeliveryFailure``, and the error is thrown on.
    private func reach(
        for relay: UpstreamExchange, by connect: () async throws(Refusal) -> UpstreamConnection
    ) async throws(Refusal) -> UpstreamConnection {
        do throws(Refusal) {
            return try await connect()
        } catch {
            let failure: DeliveryFailure = error.code == .unavailable ? .upstreamBusy : .upstreamUnreachable
            relay.connection.didFailToDeliver(because: failure)
            throw error
        }
    }

    func finish(_ connection: UpstreamConnection, of party: UpstreamCallerUsage, isReusable: Bool) {
        if isReusable { giveBack(connection, of: party) } else { close(connection, of: party) }
    }

    private func refusal(for failure: UpstreamExchange.RelayError, of relay: UpstreamExchange) -> Refusal {
        relay.connection.didEndUpstream()
        if case .refused(let refusal) = failure { return refusal }
        // The upstream may have received enough of the request to act on it.
        if !relay.hasSentNothing { relay.forwarding.observer?.requestMayHaveBeenProcessed() }
        if let reason = failure.deliveryFailure { relay.connection.didFailToDeliver(because: reason) }
        return switch failure {
        case .refused(let refusal): refusal
        case .malformed(let detail): Refusal(.upstreamFailed, detail: "\(target.host)'s answer: \(detail)")
        case .upstream(.timedOut): Refusal(.upstreamTimeout, detail: "\(target.host) did not answer in time")
        case .upstream:
            Refusal(.upstreamFailed, detail: "\(target.host) closed the connection without an answer")
        }
    }
}

/// Observes the outcome of a request at the upstream. Confined to the loop of its exchange.
package protocol UpstreamResponseObserver: AnyObject {
    /// From this call on, the upstream may have received enough of the request to act on it.
    func requestMayHaveBeenProcessed()
    /// The head of the final response was received.
    func didBegin(status: Int, fields: UpstreamResponseFields)
    /// The next bytes of the response's body were received.
    func didRead(_ bytes: Span<UInt8>)
    /// The whole response was received.
    func didEnd()
    /// Whether to read the rest of the response although the client has disconnected.
    var wantsRest: Bool { get }
}

/// The fields of an upstream's response that are passed on to the client.
package struct UpstreamResponseFields: Sendable {
    private var head: [UInt8]
    private var fields: [Request.Field]
    private let passedOn: FieldMask

    init(_ response: borrowing UpstreamResponse) {
        (head, fields, passedOn) = (response.head, response.fields, response.passedOn)
    }

    /// At most as many as a ``FieldMask`` can name.
    package init(_ fields: [(name: String, value: String)]) {
        head = []
        self.fields = []
        passedOn = .all
        for field in fields.prefix(FieldMask.limit) {
            let start = head.count
            head += field.name.utf8
            let middle = head.count
            head += field.value.utf8
            self.fields.append(
                Request.Field(
                    name: ByteRange(from: start, to: middle), value: ByteRange(from: middle, to: head.count)))
        }
    }

    /// The fields that are passed on to the client, in their order.
    package func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        for index in fields.indices where passedOn.contains(index) {
            let field = fields[index]
            body(head.span.extracting(field.name.range), head.span.extracting(field.value.range))
        }
    }
}
