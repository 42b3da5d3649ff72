#if SABOTAGE
    import CountersignSchemes
    import CountersignWire

    /// auth-v4 read with a JSON library that keeps the first member of each name.
    package struct JSONFirstWins: CarelessScheme {
        package let inner: any Scheme

        package init(_ inner: any Scheme) { self.inner = inner }

        package func claim(
            in request: Request, names: ParameterNames, _ workspace: inout Workspace
        ) throws(Refusal) -> Claim? {
            guard name == .authV4, trace(in: request, names: names) == .present else {
                return try inner.claim(in: request, names: names, &workspace)
            }
            var other = request
            // What is no object is the scheme's to refuse.
            if let body = try? JSONFirstWins.firstMembers(of: request.body) { other.body = body }
            return try inner.claim(in: other, names: names, &workspace)
        }

        /// The object with the first member of each name alone.
        private static func firstMembers(of body: [UInt8]) throws(MalformedJSON) -> [UInt8] {
            var members = JSONMembers()
            var names: Set<[UInt8]> = []
            var kept: [[UInt8]] = []
            while let member = try members.next(in: body.span) {
                var name: [UInt8] = []
                try JSONMembers.forEachByte(of: member.name, in: body.span) { name.append(ASCII.lowercased($0)) }
                guard names.insert(name).inserted else { continue }
                let quote = member.kind == .string ? 1 : 0
                kept.append(Array(body[member.name.range.lowerBound - 1..<member.value.range.upperBound + quote]))
            }
            return Array("{".utf8) + Array(kept.joined(separator: ",".utf8)) + Array("}".utf8)
        }
    }
#endif
