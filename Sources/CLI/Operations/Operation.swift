import CountersignAuthority
import CountersignServer
import CountersignWire

/// One administrative act. The command line, the admin API and the console all perform it here: with one
/// typed input, one typed result, and the scope that a caller needs. Source:
/// docs/decisions/0106-typed-operations.md.
///
/// The deployment records the act in its audit log for the actor that it was opened for.
struct Operation<Input: Sendable, Result: APIValue>: Sendable {
    let scope: APIScope
    /// One that suffices in its place; nil if none does.
    let narrowerScope: APIScope?
    private let act: @Sendable (Input, Administration) throws(OperationalError) -> Result

    init(
        _ scope: APIScope, or narrowerScope: APIScope? = nil,
        act: @escaping @Sendable (Input, Administration) throws(OperationalError) -> Result
    ) {
        (self.scope, self.narrowerScope, self.act) = (scope, narrowerScope, act)
    }

    /// Throws ``OperationalError/Kind/forbidden`` if the caller does not have the scope.
    func perform(_ input: Input, in administration: Administration) throws(OperationalError) -> Result {
        guard administration.has(scope) || narrowerScope.map(administration.has) ?? false else {
            let scopes = [scope, narrowerScope].compactMap { $0?.rawValue }.joined(separator: " or ")
            throw OperationalError(.forbidden, message: "the caller does not have the scope \(scopes)")
        }
        return try act(input, administration)
    }
}

extension Operation where Input == Void {
    func perform(in administration: Administration) throws(OperationalError) -> Result {
        try perform((), in: administration)
    }
}

/// What an operation works on, and for which caller.
struct Administration: Sendable {
    let deployment: Deployment
    /// Nil for a command that has the data folder itself, and so may do everything.
    let scopes: Set<APIScope>?
    /// In whole Unix seconds.
    let now: Int64

    func has(_ scope: APIScope) -> Bool { scopes?.contains(scope) ?? true }
}

/// A value of the admin API: its JSON, and the schema of that JSON.
protocol APIValue: Sendable {
    static var schema: APISchema { get }
    var json: JSONValue { get }
}

/// A JSON object. Its schema and its JSON are made from one list of members.
protocol APIRecord: APIValue {
    static var members: [RecordMember<Self>] { get }
}

extension APIRecord {
    static var schema: APISchema { .object(members.map(\.declaration)) }
    var json: JSONValue { .object(Self.members.map { ($0.declaration.name, $0.value(self)) }) }
}

/// A member of a ``APIRecord``.
struct RecordMember<Record>: Sendable {
    let declaration: APIMember
    let value: @Sendable (Record) -> JSONValue

    init(
        _ name: String, schema: APISchema, meaning: String = "",
        value: @escaping @Sendable (Record) -> JSONValue
    ) {
        declaration = APIMember(name, schema: schema, meaning: meaning)
        self.value = value
    }

    init<Value: APIValue>(
        _ name: String, _ path: any KeyPath<Record, Value> & Sendable, meaning: String = ""
    ) {
        self.init(name, schema: Value.schema, meaning: meaning) { $0[keyPath: path].json }
    }

    /// In whole Unix seconds.
    init(time name: String, _ path: any KeyPath<Record, Int64> & Sendable, meaning: String = "") {
        self.init(name, schema: .time, meaning: meaning) { .integer($0[keyPath: path]) }
    }

    /// In whole Unix seconds; nil is `null`.
    init(time name: String, _ path: any KeyPath<Record, Int64?> & Sendable, meaning: String = "") {
        self.init(name, schema: .nullable(.time), meaning: meaning) { $0[keyPath: path].json }
    }
}

extension String: APIValue {
    static var schema: APISchema { .text }
    var json: JSONValue { .string(self) }
}

extension Bool: APIValue {
    static var schema: APISchema { .boolean }
    var json: JSONValue { .bool(self) }
}

extension Int64: APIValue {
    static var schema: APISchema { .count }
    var json: JSONValue { .integer(self) }
}

extension Int: APIValue {
    static var schema: APISchema { .count }
    var json: JSONValue { .integer(Int64(self)) }
}

extension Optional: APIValue where Wrapped: APIValue {
    static var schema: APISchema { .nullable(Wrapped.schema) }
    var json: JSONValue { self?.json ?? .null }
}

extension Array: APIValue where Element: APIValue {
    static var schema: APISchema { .list(Element.schema) }
    var json: JSONValue { .array(map(\.json)) }
}

extension APIValue where Self: RawRepresentable & CaseIterable, RawValue == String {
    static var schema: APISchema { .choice(allCases.map(\.rawValue)) }
    var json: JSONValue { .string(rawValue) }
}

extension APIValue where Self: CustomStringConvertible {
    static var schema: APISchema { .text }
    var json: JSONValue { .string(description) }
}

extension AppName: APIValue {}
