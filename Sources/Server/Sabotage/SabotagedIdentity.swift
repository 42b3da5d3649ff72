#if SABOTAGE
    import CountersignGate
    import CountersignHTTP
    import CountersignWire

    /// Writes our lines, but lets a client replace those whose names it has sent fields of.
    final class ClientWrittenIdentityFields: CallerIdentityFields {
        override func lines(
            for caller: Caller, sending request: Request, leaving unsigned: [UInt8],
            over exchange: any Exchange, event: EventID, at now: @autoclosure () -> Int64
        ) throws(Refusal) -> [UInt8] {
            let lines = try super.lines(
                for: caller, sending: request, leaving: unsigned, over: exchange, event: event, at: now())
            return ClientWrittenIdentityFields.replaced(lines, by: request)
        }

        override func lines(
            for passage: PassThrough, sending request: Request, over exchange: any Exchange, event: EventID
        ) -> [UInt8] {
            let lines = super.lines(for: passage, sending: request, over: exchange, event: event)
            return ClientWrittenIdentityFields.replaced(lines, by: request)
        }

        private static func replaced(_ lines: [UInt8], by request: Request) -> [UInt8] {
            var theirs: [(name: String, line: String)] = []
            for field in request.fields {
                let name = request.text(field.name)
                guard name.hasPrefix("countersign-") else { continue }
                theirs.append((name, "\(name): \(request.text(field.value))"))
            }
            let ours = String(decoding: lines, as: UTF8.self).split(separator: "\r\n").filter { line in
                !theirs.contains { line.lowercased().hasPrefix("\($0.name):") }
            }
            return Array((ours.map(String.init) + theirs.map(\.line)).map { "\($0)\r\n" }.joined().utf8)
        }
    }
#endif
