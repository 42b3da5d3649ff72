import CountersignWire

/// Form parameters decoded and sorted as form-md5 signs them.
enum FormParameters {
    static let most = 256

    /// What a first look at a form finds.
    struct Scan {
        fileprivate var hasAppID = false
        fileprivate var hasOther = false
        /// Where the form could not be read further.
        var problem: Form.Problem?

        /// Whether somebody signs here, well or badly.
        var isSigned: Bool { hasAppID && hasOther }
        var hasNoBaseName: Bool { !hasAppID && !hasOther && problem == nil }
    }

    /// Finds names and values as they are written, by their places in `text`.
    static func scan(_ text: Span<UInt8>, _ parameters: inout [FormParameter]) -> Scan {
        parameters.removeAll(keepingCapacity: true)
        var scan = Scan()
        var reader = Form.Reader()
        do throws(Form.Problem) {
            while let pair = try reader.next(in: text) {
                guard parameters.count < most else {
                    throw Form.Problem(at: Int(pair.name.start), expected: "at most \(most) parameters")
                }
                parameters.append(FormParameter(name: pair.name, value: pair.value, spelling: pair.spelling))
                if Form.isNamed("app_id", pair, of: text) {
                    scan.hasAppID = true
                } else if Form.isNamed("sign", pair, of: text) || Form.isNamed("rand", pair, of: text)
                    || Form.isNamed("timestamp", pair, of: text)
                {
                    scan.hasOther = true
                }
            }
        } catch {
            scan.problem = error
        }
        return scan
    }

    static func refusal(_ problem: Form.Problem) -> Refusal {
        Refusal(.malformed, "form parameters: expected \(problem.expected) at byte \(problem.at)")
    }

    /// Decodes what a scan of the same text found, and sorts it. Every name occurs once.
    static func decode(_ text: Span<UInt8>, _ workspace: inout Workspace) throws(Refusal) {
        workspace.decoded.clear()
        do throws(Form.Problem) {
            for index in workspace.parameters.indices {
                var parameter = workspace.parameters[index]
                try parameter.decode(text, into: &workspace.decoded)
                workspace.parameters[index] = parameter
            }
        } catch {
            throw refusal(error)
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
