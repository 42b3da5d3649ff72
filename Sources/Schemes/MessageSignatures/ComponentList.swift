import CountersignWire

/// The components of one signature, as its list names them.
///
/// Safe to send: it belongs to one workspace, and so to one request at a time.
final class ComponentList: @unchecked Sendable {
    /// From the opening to the closing parenthesis.
    let text: [UInt8]
    /// Slices of `text`. Their lines are those of the message that was read last.
    var components: [Component]
    /// Whether a later request may have the same list.
    var isKept = false
    private var storedPlan: Plan?

    /// `components` have slices of a text that has `text` at `start`.
    init(_ components: [Component], from start: Int, text: borrowing Span<UInt8>) {
        self.text = text.withUnsafeBufferPointer { Array($0) }
        self.components = components.map { $0.moved(back: start) }
    }

    /// What can be found out about the components without the message: made once for each list.
    final class Plan {
        /// Whether all components are derived ones of a request, without parameters, or whole fields, and
        /// none comes twice.
        let isPlain: Bool
        /// Of a plain list: which of the components that the gate asks for are among these.
        let covered: CoveredComponents
        /// The beginnings of the lines of a signature base: a line feed except before the first, the
        /// identifier, a colon and a space. The last is that of `@signature-params`.
        let labels: [UInt8]
        let lastLabel: ByteRange

        fileprivate init(_ list: ComponentList) {
            let text = list.text
            var covered = CoveredComponents()
            var isPlain = true
            for index in list.components.indices {
                let component = list.components[index]
                guard component.parameters.isEmpty, component.kind == .field || component.isDerivedPlainly,
                    list.isFirst(component, before: index)
                else {
                    isPlain = false
                    break
                }
                covered.insert(component, at: index)
            }
            self.isPlain = isPlain
            self.covered = covered
            var labels: [UInt8] = []
            for index in list.components.indices {
                let start = labels.count
                if index > 0 { labels.append(UInt8(ascii: "\n")) }
                labels += text[list.components[index].identifier.range]
                labels += ": ".utf8
                list.components[index].label = ByteRange(from: start, to: labels.count)
            }
            let start = labels.count
            labels += (labels.isEmpty ? "" : "\n").utf8
            labels += "\"@signature-params\": ".utf8
            lastLabel = ByteRange(from: start, to: labels.count)
            self.labels = labels
        }
    }

    /// Only the list of the chosen signature needs it.
    var plan: Plan {
        if let storedPlan { return storedPlan }
        let plan = Plan(self)
        storedPlan = plan
        return plan
    }

    /// The component as the message writes it, for a refusal.
    func identifier(_ component: Component) -> String {
        let text = text
        return text.span.extracting(component.identifier.range).text
    }

    /// Whether `text` begins with this list.
    @inline(__always)
    func begins(_ other: borrowing Span<UInt8>) -> Bool {
        let text = text
        return other.count >= text.count && other.extracting(0..<text.count).matches(text.span)
    }

    /// Whether no component before that index is the same.
    func isFirst(_ component: Component, before index: Int) -> Bool {
        let text = text
        for earlier in 0..<index where component.isSame(as: components[earlier], in: text.span) {
            return false
        }
        return true
    }
}

extension Component {
    /// Derived from a request, and without a parameter: the kinds before ``Kind/queryParam``.
    var isDerivedPlainly: Bool { kind.rawValue < Kind.queryParam.rawValue }

    /// The same in a text that begins `offset` bytes later.
    fileprivate func moved(back offset: Int) -> Component {
        var moved = self
        moved.identifier = identifier.offset(back: offset)
        moved.name = name.offset(back: offset)
        if !parameters.isDisjoint(with: [.key, .name]) { moved.argument = argument.offset(back: offset) }
        return moved
    }
}
