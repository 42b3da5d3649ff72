import CountersignWire

/// Form parameters decoded and sorted, as the schemes that sign them do.
enum FormParameters {
    static let most = 256

    /// Finds names and values as they are written, by their places in `text`.
    static func scan(_ text: Span<UInt8>, into parameters: inout [FormParameter]) throws(Refusal) {
        parameters.removeAll(keepingCapacity: true)
        var reader = Form.Reader()
        do throws(Form.Problem) {
            while let pair = try reader.next(in: text) {
                guard parameters.count < most else {
                    throw Form.Problem(at: Int(pair.name.start), expected: "at most \(most) parameters")
                }
                parameters.append(FormParameter(name: pair.name, value: pair.value, spelling: pair.spelling))
            }
        } catch {
            throw refusal(error)
        }
    }

    static func refusal(_ problem: Form.Problem) -> Refusal {
        Refusal(.malformed, "form parameters: expected \(problem.expected) at byte \(problem.at)")
    }

    /// Decodes what a scan of the same text found.
    static func decode(_ text: Span<UInt8>, _ workspace: inout Workspace) throws(Refusal) {
        workspace.decoded.clear()
        workspace.decoded.append(text)
        do throws(Form.Problem) {
            for index in workspace.parameters.indices {
                var parameter = workspace.parameters[index]
                try parameter.decode(text, into: &workspace.decoded)
                workspace.parameters[index] = parameter
            }
        } catch {
            throw refusal(error)
        }
    }

    /// Sorts what was decoded. Every name occurs once; a refusal says in what.
    static func sortUnique(_ workspace: inout Workspace, of place: StaticString) throws(Refusal) {
        sort(&workspace)
        for index in workspace.parameters.indices.dropFirst() {
            let (before, this) = (workspace.parameters[index - 1], workspace.parameters[index])
            guard before.prefix == this.prefix else { continue }
            let name = workspace.decoded.span.extracting(this.name.range)
            if name.matches(workspace.decoded.span.extracting(before.name.range)) {
                throw Refusal(.malformed, "\(place): \(name.text) twice")
            }
        }
    }

    /// By the bytes of their names; those of one name keep their order. Few are sorted in place; many in so many steps that
    /// 256 names of kilobytes that begin alike, which anybody can send, hold up nobody.
    static func sort(_ workspace: inout Workspace) {
        // Moved out and back, since the comparison reads the rest of the workspace.
        var sorted: [FormParameter] = []
        swap(&sorted, &workspace.parameters)
        sorted.sort { isBefore($0, $1, workspace.decoded.span) }
        swap(&sorted, &workspace.parameters)
    }

    private static func isBefore(_ left: FormParameter, _ right: FormParameter, _ text: borrowing Span<UInt8>) -> Bool {
        if left.prefix != right.prefix { return left.prefix < right.prefix }
        return text.extracting(left.name.range).isBefore(text.extracting(right.name.range))
    }
}
