#if SABOTAGE
    import CountersignSchemes
    import CountersignWire

    /// Verifies the path that a proxy of the field would have noted in `X-Original-Path`, whoever wrote that.
    package struct PathFromHeader: CarelessScheme {
        package let inner: any Scheme

        package init(_ inner: any Scheme) { self.inner = inner }

        package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
            try inner.spell(claim, request.atItsOriginalPath, &workspace)
        }

        package func respell(
            _ attempt: Int, _ claim: Claim, _ request: Request, _ workspace: inout Workspace
        ) throws(Refusal) -> Respelling { try inner.respell(attempt, claim, request.atItsOriginalPath, &workspace) }
    }

    extension Request {
        fileprivate var atItsOriginalPath: Request {
            guard let original = value(of: "x-original-path") else { return self }
            var other = self
            let rest = Array(head[path.range.upperBound..<target.range.upperBound])
            let start = head.count
            other.head += Array(head[original.range]) + rest
            other.path = Slice(start, start + original.count)
            other.target = Slice(start, other.head.count)
            return other
        }
    }
#endif
