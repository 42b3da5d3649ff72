import CountersignWire

/// Form parameters decoded and sorted as form-md5 signs them.
enum FormParameters {
    static let most = 256

    /// Which of the scheme's own names occur, however they are escaped.
    struct Names {
        private var hasAppID = false
        private var hasTelling = false
        private var isCut = false

        /// Whether somebody signs here, well or badly.
        var areSigned: Bool { hasAppID && hasTelling }
        /// Whether there are none; a text that cannot be read to its end may have some.
        var areForeign: Bool { !hasAppID && !hasTelling && !isCut }

        init() {}

        /// As far as the text can be read.
        init(in text: Span<UInt8>) {
            var reader = Form.Reader()
            do throws(Form.Problem) {
                while let pair = try reader.next(in: text) { note(pair, of: text) }
            } catch {
                isCut = true
            }
        }

        mutating func note(_ pair: Form.Pair, of text: Span<UInt8>) {
            if !hasAppID { hasAppID = Form.isNamed("app_id", pair, of: text) }
            if !hasTelling {
                hasTelling =
                    Form.isNamed("sign", pair, of: text) || Form.isNamed("rand", pair, of: text)
                    || Form.isNamed("timestamp", pair, of: text)
            }
        }
    }

    /// Finds names and values as they are written, by their places in `text`; and where it could not be read further.
    static func scan(_ text: Span<UInt8>, _ parameters: inout [FormParameter]) -> (names: Names, problem: Form.Problem?)
    {
        parameters.removeAll(keepingCapacity: true)
        var names = Names()
        var reader = Form.Reader()
        do throws(Form.Problem) {
            while let pair = try reader.next(in: text) {
                guard parameters.count < most else {
                    throw Form.Problem(at: Int(pair.name.start), expected: "at most \(most) parameters")
                }
                parameters.append(FormParameter(name: pair.name, value: pair.value, spelling: pair.spelling))
                names.note(pair, of: text)
            }
        } catch {
            return (names, error)
        }
        return (names, nil)
    }

    static func refusal(_ problem: Form.Problem) -> Refusal {
        Refusal(.malformed, "form parameters: expected \(problem.expected) at byte \(problem.at)")
    }

    /// Decodes what a scan of the same text found, and sorts it. Every name occurs once.
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
        sort(&workspace)
        for index in workspace.parameters.indices.dropFirst() {
            let (before, this) = (workspace.parameters[index - 1], workspace.parameters[index])
            guard before.prefix == this.prefix else { continue }
            let name = workspace.decoded.span.extracting(this.name.range)
            if name.matches(workspace.decoded.span.extracting(before.name.range)) {
                throw Refusal(.malformed, "form parameters: \(name.text) twice")
            }
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
        // `private_`, as prefixes have it.
        let prefix: UInt64 = 0x7072_6976_6174_655F
        if parameter.prefix != prefix { return prefix < parameter.prefix }
        let name = text.extracting(parameter.name.range)
        for index in 0..<min(name.count, key.utf8CodeUnitCount) where name[index] != key.utf8Start[index] {
            return key.utf8Start[index] < name[index]
        }
        return key.utf8CodeUnitCount < name.count
    }
}
