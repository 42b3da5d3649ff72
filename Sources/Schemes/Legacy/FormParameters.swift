import CountersignWire

/// Form parameters decoded and sorted as form-md5 signs them.
enum FormParameters {
    static let most = 256

    /// Fills `workspace.parameters`. Every name occurs once.
    static func read(_ text: borrowing Span<UInt8>, _ workspace: inout Workspace) throws(Refusal) {
        workspace.parameters.removeAll(keepingCapacity: true)
        workspace.decoded.clear()
        var reader = Form.Reader()
        do throws(Form.Problem) {
            while let pair = try reader.next(in: text) {
                guard workspace.parameters.count < most else {
                    throw Form.Problem(at: Int(pair.name.start), expected: "at most \(most) parameters")
                }
                let name = try Form.decode(pair.name, pair.spelling, of: text, into: &workspace.decoded)
                let value = try Form.decode(pair.value, pair.spelling, of: text, into: &workspace.decoded)
                workspace.parameters.append(FormParameter(name: name, value: value, workspace.decoded.span))
            }
        } catch {
            throw Refusal(.malformed, "form parameters: expected \(error.expected) at byte \(error.at)")
        }
        sort(&workspace)
        for index in workspace.parameters.indices.dropFirst() {
            let name = workspace.parameters[index].name
            let bytes = workspace.decoded.span.extracting(name.range)
            let before = workspace.decoded.span.extracting(workspace.parameters[index - 1].name.range)
            if bytes.matches(before) { throw Refusal(.malformed, "form parameters: \(bytes.text) twice") }
        }
    }

    /// By insertion: there are few, and mostly the prefix decides.
    private static func sort(_ workspace: inout Workspace) {
        for index in workspace.parameters.indices.dropFirst() {
            let moving = workspace.parameters[index]
            var place = index
            while place > 0, isBefore(moving, workspace.parameters[place - 1], workspace.decoded.span) {
                workspace.parameters[place] = workspace.parameters[place - 1]
                place -= 1
            }
            workspace.parameters[place] = moving
        }
    }

    private static func isBefore(_ left: FormParameter, _ right: FormParameter, _ text: borrowing Span<UInt8>) -> Bool {
        if left.prefix != right.prefix { return left.prefix < right.prefix }
        let left = text.extracting(left.name.range)
        let right = text.extracting(right.name.range)
        for index in 0..<min(left.count, right.count) where left[index] != right[index] {
            return left[index] < right[index]
        }
        return left.count < right.count
    }

    /// Whether `private_key`, which is not sent, sorts before that parameter.
    static func isPrivateKey(before parameter: FormParameter, _ text: borrowing Span<UInt8>) -> Bool {
        let key: StaticString = "private_key"
        let name = text.extracting(parameter.name.range)
        for index in 0..<min(name.count, key.utf8CodeUnitCount) where name[index] != key.utf8Start[index] {
            return key.utf8Start[index] < name[index]
        }
        return key.utf8CodeUnitCount < name.count
    }
}
