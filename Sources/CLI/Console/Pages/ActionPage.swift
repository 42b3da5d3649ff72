import CountersignAuthority
import CountersignSeal
import CountersignServer
import CountersignWire

/// The form of an action, and what it does.
enum ActionPage {
    static func form(
        for request: ConsoleRequest, of visit: ConsoleVisit
    ) throws(APIProblem) -> ConsolePage {
        let (action, operation) = try action(of: request, for: visit)
        return try page(
            action, operation: operation, values: request.query, problem: nil, visit: visit)
    }

    /// Runs the action. What is wrong with the values is said above the form, which keeps them.
    static func run(
        _ form: [String: String], at request: ConsoleRequest, of visit: ConsoleVisit
    ) throws(APIProblem) -> ConsoleAnswer {
        let (action, operation) = try action(of: request, for: visit)
        do throws(APIProblem) {
            if let name = action.confirmed {
                guard form["confirmation"] == form[name] else {
                    throw APIProblem(400, code: "invalid", detail: "type `\(form[name] ?? "")` to confirm")
                }
            }
            let result = try visit.run(
                operation.id, values: form.filter { !$0.value.isEmpty },
                body: body(of: operation, from: form), once: form["once"].flatMap { $0.isEmpty ? nil : $0 })
            guard action.outcome == .report else { return .redirect(action.page(form)) }
            return .page(report(of: action, by: operation, result: result, values: form))
        } catch {
            guard error.status == 400 || error.status == 409 else { throw error }
            return .page(
                try page(action, operation: operation, values: form, problem: error, visit: visit))
        }
    }

    private static func action(
        of request: ConsoleRequest, for visit: ConsoleVisit
    ) throws(APIProblem) -> (ConsoleAction, APIOperation) {
        guard request.segments.count == 2, let action = ConsoleAction.named(request.segments[1]),
            let operation = APIOperation.all.first(where: { $0.id == action.operation })
        else { throw APIProblem(404, code: "not-found", detail: "there is no such action") }
        try visit.require(operation)
        return (action, operation)
    }

    // MARK: Forms

    private static func page(
        _ action: ConsoleAction, operation: APIOperation, values: [String: String], problem: APIProblem?,
        visit: ConsoleVisit
    ) throws(APIProblem) -> ConsolePage {
        let hidden: [HTML] = action.subject.map { name in
            "<input type=\"hidden\" name=\"\(name)\" value=\"\(values[name] ?? "")\">\n"
        }
        let fields = fields(of: action, operation: operation, values: values)
        let subject: [(name: String, value: HTML)] = action.subject.compactMap { name in
            guard let value = values[name], !value.isEmpty else { return nil }
            return (ActionPage.label(name), ConsoleMarkup.code(value))
        }
        let preview = try preview(of: action, values: values, visit: visit)
        let button = action.weight == .grave ? "grave" : "primary"
        return ConsolePage(
            action.title, status: problem?.status ?? 200,
            trail: [(title: "Back", path: action.page(values))],
            body: """
                \(problem.map { ConsoleMarkup.notice($0.detail, tone: .bad) } ?? .none)
                \(subject.isEmpty ? .none : ConsoleMarkup.facts(subject))
                <p>\(action.consequence)</p>
                \(preview)
                <form method="post" class="action" action="\(ConsolePath.path("do", action.operation))">
                \(visit.formField)
                <input type="hidden" name="once" value="\(Hex.encode(SystemRandom().bytes(12).span))">
                \(hidden)\(fields)\(confirmation(of: action, values: values))
                <p><button class="\(button)">\(action.title)</button>
                <a href="\(action.page(values))">Cancel</a></p>
                </form>
                """)
    }

    /// What the operator should know before the form is sent.
    private static func preview(
        of action: ConsoleAction, values: [String: String], visit: ConsoleVisit
    ) throws(APIProblem) -> HTML {
        switch action.operation {
        case "retireRelease" where visit.may("getImpact"):
            return ConsoleMarkup.section(
                "If it were retired now", id: "impact",
                body: try ReleasePages.impact(of: values["key"] ?? "", visit: visit))
        case "changePolicy" where visit.may("getPolicy"):
            return try setting("getPolicy", values: values, visit: visit)
        case "changeReleasePolicy" where visit.may("getReleasePolicy"):
            return try setting("getReleasePolicy", values: values, visit: visit)
        default: return .none
        }
    }

    /// What a policy key means, and what it is now.
    private static func setting(
        _ reading: String, values: [String: String], visit: ConsoleVisit
    ) throws(APIProblem) -> HTML {
        let policy = try visit.run(reading, values: values).records("policy")
        guard let entry = policy.first(where: { $0.text("key") == values["name"] }) else { return .none }
        var facts: [(name: String, value: HTML)] = [
            ("Meaning", "\(entry.text("meaning"))"), ("Value now", ConsoleMarkup.code(entry.text("value"))),
        ]
        if entry.has("default") { facts.append(("Default", ConsoleMarkup.code(entry.text("default")))) }
        return ConsoleMarkup.facts(facts)
    }

    private static func fields(
        of action: ConsoleAction, operation: APIOperation, values: [String: String]
    ) -> [HTML] {
        operation.inputs.filter { !action.subject.contains($0.name) }.map { input in
            if case .assignments = input.use {
                guard action.subject.contains("name") else { return settingsField(values: values) }
                return field(
                    "value", hint: "empty restores the default", control: textInput("value", values: values))
            }
            return field(
                input.name, hint: input.meaning, isRequired: input.isRequired,
                control: control(for: input, values: values))
        }
    }

    private static func field(
        _ name: String, hint: String, isRequired: Bool = false, control: HTML
    ) -> HTML {
        """
        <p class="field"><label for="f-\(name)">\(label(name))\(isRequired ? "" : " (optional)")</label>
        \(control)<span class="hint" id="h-\(name)">\(hint)</span></p>

        """
    }

    private static func control(for input: APIInput, values: [String: String]) -> HTML {
        let value = values[input.name] ?? ""
        let required: HTML = input.isRequired ? " required" : ""
        let names: HTML =
            "id=\"f-\(input.name)\" name=\"\(input.name)\" aria-describedby=\"h-\(input.name)\"\(required)"
        if case .standardInput = input.use {
            return "<input type=\"password\" autocomplete=\"new-password\" \(names)>"
        }
        if case .document = input.use {
            return "<textarea rows=\"8\" spellcheck=\"false\" \(names)>\(value)</textarea>"
        }
        switch input.schema {
        case .choice(let words):
            // Nothing is chosen for the operator: a required choice cannot be sent without one.
            let empty: HTML = "<option value=\"\"></option>"
            let options: [HTML] = words.map { word in
                let chosen: HTML = word == value ? " selected" : ""
                return "<option\(chosen)>\(word)</option>"
            }
            return "<select \(names)>\(empty)\(options)</select>"
        case .boolean:
            let checked: HTML = value == "true" ? " checked" : ""
            return "<input type=\"checkbox\" value=\"true\" \(names)\(checked)>"
        case .integer(let range):
            return """
                <input type="number" min="\(range.lowerBound)" max="\(range.upperBound)"
                 value="\(value)" \(names)>
                """
        default:
            return "<input value=\"\(value)\" autocomplete=\"off\" spellcheck=\"false\" \(names)>"
        }
    }

    private static func textInput(_ name: String, values: [String: String]) -> HTML {
        """
        <input id="f-\(name)" name="\(name)" aria-describedby="h-\(name)" value="\(values[name] ?? "")" \
        autocomplete="off" spellcheck="false">
        """
    }

    private static func settingsField(values: [String: String]) -> HTML {
        field(
            "settings", hint: "KEY=VALUE, one a line; the policy page lists the keys",
            control: """
                <textarea id="f-settings" name="settings" rows="3" aria-describedby="h-settings" \
                spellcheck="false">\(values["settings"] ?? "")</textarea>
                """)
    }

    private static func confirmation(of action: ConsoleAction, values: [String: String]) -> HTML {
        guard let name = action.confirmed else { return .none }
        return """
            <p class="field"><label for="f-confirmation">To confirm, type
            <code>\(values[name] ?? "")</code></label>
            <input id="f-confirmation" name="confirmation" required autocomplete="off" spellcheck="false"></p>
            """
    }

    /// `read_only_at` as people write it.
    static func label(_ name: String) -> String {
        let text = name.replacing("_", with: " ").replacing("-", with: " ")
        return text.prefix(1).uppercased() + text.dropFirst()
    }

    // MARK: Values

    /// The members of the operation's body; an empty field is left out.
    private static func body(
        of operation: APIOperation, from form: [String: String]
    ) throws(APIProblem) -> [(name: String, value: JSONValue)] {
        guard operation.method.hasBody else { return [] }
        var members: [(name: String, value: JSONValue)] = []
        for input in operation.otherInputs {
            if case .assignments = input.use {
                if let settings = try settings(in: form) { members.append((input.name, settings)) }
                continue
            }
            guard let text = form[input.name], !text.isEmpty else { continue }
            members.append((input.name, try value(of: text, for: input)))
        }
        return members
    }

    private static func value(of text: String, for input: APIInput) throws(APIProblem) -> JSONValue {
        switch input.schema {
        case .record, .map:
            guard let document = try? JSONReader.read(Array(text.utf8)), document.root.members != nil else {
                throw APIProblem(400, code: "invalid", detail: "\(label(input.name)): expected a JSON object")
            }
            return JSONValue(document.root, of: document)
        case .integer, .time:
            guard let number = Int64(text) else {
                throw APIProblem(
                    400, code: "invalid", detail: "\(label(input.name)): expected a whole number")
            }
            return .integer(number)
        case .boolean: return .bool(text == "true")
        case .list: return .strings(text.split(separator: ",").map { String($0.drop { $0 == " " }) })
        default: return .string(text)
        }
    }

    /// One setting by its name and value, or a line for each.
    private static func settings(in form: [String: String]) throws(APIProblem) -> JSONValue? {
        if let name = form["name"], !name.isEmpty {
            let value = form["value"] ?? ""
            return .object([(name, value.isEmpty ? .null : .string(value))])
        }
        let lines = (form["settings"] ?? "").split(whereSeparator: \.isNewline)
        guard !lines.isEmpty else { return nil }
        var members: [(name: String, value: JSONValue)] = []
        for line in lines {
            let sides = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard sides.count == 2 else {
                throw APIProblem(400, code: "invalid", detail: "settings: `\(line)`: expected KEY=VALUE")
            }
            members.append((String(sides[0]), .string(String(sides[1]))))
        }
        return .object(members)
    }

    // MARK: Results

    private static func report(
        of action: ConsoleAction, by operation: APIOperation, result: ConsoleRecord, values: [String: String]
    ) -> ConsolePage {
        let times = Set(operation.response.declaredMembers.filter(\.schema.isTime).map(\.name))
        let secrets = ["secret", "private_key", "reset_code", "code"]
        let shown = result.members.filter { !$0.text.isEmpty }
        let once = ConsoleMarkup.notice("Copy the secret now: it is not shown again.", tone: .warning)
        // A code that was redeemed, and is not the right one.
        let isRefused = result.has("accepted") && !result.isTrue("accepted")
        let isSecret = shown.contains { secrets.contains($0.name) }
        return ConsolePage(
            action.title, trail: [(title: "Back", path: action.page(values))],
            body: """
                \(isRefused
                    ? ConsoleMarkup.notice("Not accepted.", tone: .bad)
                    : ConsoleMarkup.notice("Done.", tone: .good))
                \(isSecret ? once : .none)
                \(ConsoleMarkup.facts(shown.map { member in
                    (
                        label(member.name),
                        times.contains(member.name)
                            ? ConsoleMarkup.time(result.number(member.name))
                            : ConsoleMarkup.code(member.text)
                    )
                }))
                <p><a href="\(action.page(values))">Go on</a></p>
                """)
    }
}
