import CountersignWire

/// The fields of a multipart body as form parameters. Source: docs/protocol.md, form-md5.
enum MultipartParameters {
    /// Leaves the fields in `workspace` as parameters, decoded and not yet sorted; gives the names of the
    /// files, joined by `, `.
    static func read(_ request: Request, into workspace: inout Workspace) throws(Refusal) -> [UInt8] {
        guard !request.hasFormType, !request.names.contains(.contentEncoding),
            let boundary = Multipart.Boundary(in: request)
        else {
            throw Refusal(
                .malformed,
                detail:
                    "multipart: expected one Content-Type, multipart/form-data with a boundary and no other "
                    + "parameter, and no "
                    + "Content-Encoding")
        }
        let body = request.body.span
        workspace.parameters.removeAll(keepingCapacity: true)
        workspace.decoded.clear()
        var files: [UInt8] = []
        for part in try parts(of: body, between: boundary) {
            let name = body.extracting(part.name.range)
            switch part.kind {
            case .field:
                try append(
                    name, value: body.extracting(part.content.range), at: part.content.start, to: &workspace)
            case .file:
                guard !isSigned(name) else {
                    throw Refusal(
                        .malformed,
                        detail: "multipart: \(name.text) is a file; expected a field, which is signed")
                }
                if !files.isEmpty { files += [UInt8(ascii: ","), UInt8(ascii: " ")] }
                name.withUnsafeBufferPointer { files.append(contentsOf: $0) }
            }
        }
        return files
    }

    private static func parts(
        of body: Span<UInt8>, between boundary: Multipart.Boundary
    ) throws(Refusal) -> [Multipart.Part] {
        do throws(ParseError) {
            return try Multipart.read(body, between: boundary)
        } catch {
            throw Refusal(.malformed, detail: "multipart: \(error)")
        }
    }

    private static func append(
        _ name: Span<UInt8>, value: Span<UInt8>, at start: UInt32, to workspace: inout Workspace
    ) throws(Refusal) {
        guard value.firstIndex(of: 0, from: 0) == nil else {
            throw Refusal(.malformed, detail: "multipart: expected no NUL in the field at byte \(start)")
        }
        let first = workspace.decoded.count
        workspace.decoded.append(name)
        let middle = workspace.decoded.count
        workspace.decoded.append(value)
        var parameter = FormParameter(
            name: ByteRange(from: first, to: middle),
            value: ByteRange(from: middle, to: workspace.decoded.count), encoding: .plain)
        parameter.prefix = FormParameter.prefix(of: name)
        workspace.parameters.append(parameter)
    }

    /// Whether some reader may take a file of that name for one of form-md5's own parameters, which nothing
    /// would sign.
    private static func isSigned(_ name: Span<UInt8>) -> Bool {
        let folded = Multipart.folded(name)
        return signed.contains { folded.elementsEqual($0.utf8) }
    }

    private static let signed = [
        "app_id", "plat", "ver", "rand", "timestamp", "sign", "private_key", "userid", "token",
    ]
}
