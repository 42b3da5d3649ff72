// swift-format-ignore-file
// swift-http-types names these, and documents them. Shapes of swift-http-types 1.3, as far as
// Examples/OpenAPIRuntime uses it; see README.md. Source: its documentation.

public struct HTTPField: Sendable, Hashable {
    public struct Name: Sendable, Hashable {
        public init?(_ name: String) {}
        public var rawName: String { "" }
    }
    public init(name: Name, value: String) { (self.name, self.value) = (name, value) }
    public var name: Name
    public var value: String
}
public struct HTTPFields: Sendable, RandomAccessCollection {
    public init() {}
    public var startIndex: Int { 0 }
    public var endIndex: Int { 0 }
    public subscript(index: Int) -> HTTPField { fatalError() }
    public mutating func append(_ field: HTTPField) {}
}
public struct HTTPRequest: Sendable {
    public struct Method: Sendable { public var rawValue: String { "" } }
    public var method: Method
    public var path: String?
    public var headerFields: HTTPFields
}
public struct HTTPResponse: Sendable {
    public struct Status: Sendable { public init(code: Int, reasonPhrase: String = "") {} }
    public init(status: Status, headerFields: HTTPFields = HTTPFields()) {}
}
