import CountersignWire

/// How path and query are written in a canonical request.
///
/// Clients in the field differ in it, so up to three spellings of a request are tried. No two requests of different
/// meaning may share one, or a signature for one of them would open the other:
/// - *Query.* Each spelling of a query is itself a query, and has the same parameters as the one that was sent: it is in
///   another order, or writes the same bytes with other escapes, or a bare name with `=`. `+`, which is a space to some
///   backends and itself to others, and `%2B` stay apart. So two queries that share a spelling have the same parameters.
/// - *Path.* The standard spelling escapes what was sent once more (`%20` to `%2520`), so it is another path where it
///   differs, and a client might sign that other path as written. Hence a path is taken as written only where it is not
///   itself the standard spelling of another path: ``SigV4Path/mayBeStandard(_:)``.
/// - Both stand between the same line feeds, which no target has.
enum SigV4Spelling: BitwiseCopyable, Sendable {
    /// AWS's: parameters escaped anew and sorted; the path escaped once more, but for s3.
    case standard
    /// Parameters sorted as they were sent: botocore, for a query that it was given in the URL.
    case sorted
    /// Path and query as they were sent: curl up to 7.88.
    case asWritten
}

extension SigV4Space {
    /// Whether that spelling is allowed, and may be another than those before it. Asked after the standard one was
    /// written.
    func mayDiffer(_ spelling: SigV4Spelling, _ request: Request) -> Bool {
        switch spelling {
        case .standard: return true
        case .sorted: return !facts.isEscapedAsStandard
        case .asWritten:
            // A presigned URL's own parameters are added by clients that know how to sort.
            guard reading.form == .header else { return false }
            let path = request.head.span.extracting(request.path.range)
            let isSamePath = isForS3 || !facts.isPathChanged
            if isSamePath { return !facts.isInOrder || facts.hasBareNames || !facts.isEscapedAsStandard }
            return !SigV4Path.mayBeStandard(path)
        }
    }

    /// The one service whose paths are signed as they are: they are names of objects.
    var isForS3: Bool { words.span.extracting(reading.service.range).matches("s3") }
}
