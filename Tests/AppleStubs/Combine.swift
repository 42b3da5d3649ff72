// swift-format-ignore-file
// Apple names these, and documents them.
// Shapes of the part of Combine that Examples/Notes uses; see README.md. Source: Apple's
// documentation of Combine.

public protocol ObservableObject: AnyObject {}

@propertyWrapper
public struct Published<Value> {
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    public var wrappedValue: Value
}
