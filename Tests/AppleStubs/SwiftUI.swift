// swift-format-ignore-file
// Apple names these, and documents them.
// Shapes of the part of SwiftUI that Examples/Notes uses, as iOS 16 has it; see README.md. Source: Apple's
// documentation of SwiftUI.
// `UITextContentType` is UIKit's. Foundation comes with SwiftUI there.
import Combine
@_exported import Foundation

// Views.

@MainActor @preconcurrency
public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}
extension Never: View { public var body: Never { self } }
extension Optional: View where Wrapped: View { public var body: Never { stub() } }
public func stub() -> Never { while true {} }

public struct Parts<each Part: View>: View { public var body: Never { stub() } }
public enum Either<First: View, Second: View>: View { case neither; public var body: Never { stub() } }

@resultBuilder
@MainActor
public struct ViewBuilder {
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Content: View>(
        _ content: repeat each Content
    ) -> Parts<repeat each Content> {
        Parts()
    }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    public static func buildEither<First: View, Second: View>(first: First) -> Either<First, Second> {
        .neither
    }
    public static func buildEither<First: View, Second: View>(second: Second) -> Either<First, Second> {
        .neither
    }
}

public struct Text: View {
    public init<S: StringProtocol>(_ content: S) {}
    public func foregroundColor(_ color: Color?) -> Text { self }
    public var body: Never { stub() }
}
public struct Color: Sendable { public static let red = Color() }
public struct TextField<Label: View>: View { public var body: Never { stub() } }
extension TextField where Label == Text {
    public init<S: StringProtocol>(_ title: S, text: Binding<String>) {}
}
public struct SecureField<Label: View>: View { public var body: Never { stub() } }
extension SecureField where Label == Text {
    public init<S: StringProtocol>(_ title: S, text: Binding<String>) {}
}
public struct Button<Label: View>: View { public var body: Never { stub() } }
extension Button where Label == Text {
    public init<S: StringProtocol>(_ title: S, action: @escaping @MainActor () -> Void) {}
}
public struct Link<Label: View>: View { public var body: Never { stub() } }
extension Link where Label == Text { public init<S: StringProtocol>(_ title: S, destination: URL) {} }
public struct ProgressView: View { public init() {}; public var body: Never { stub() } }

public struct Group<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { stub() }
}
public struct VStack<Content: View>: View {
    public init(spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {}
    public var body: Never { stub() }
}
public struct Form<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { stub() }
}
public struct Section<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { stub() }
}
public struct List<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { stub() }
}
public struct NavigationStack<Root: View>: View {
    public init(@ViewBuilder root: () -> Root) {}
    public var body: Never { stub() }
}
public struct ForEach<Data: RandomAccessCollection, Content: View>: View where Data.Element: Identifiable {
    public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {}
    public var body: Never { stub() }
}

// What changes a view.

public struct UITextContentType: Sendable {
    public static let username = UITextContentType()
    public static let password = UITextContentType()
}
public struct TextInputAutocapitalization: Sendable {
    public static var never: TextInputAutocapitalization { .init() }
}

extension View {
    public func padding() -> some View { self }
    public func disabled(_ disabled: Bool) -> some View { self }
    public func navigationTitle<S: StringProtocol>(_ title: S) -> some View { self }
    public func toolbar<Content: View>(@ViewBuilder content: () -> Content) -> some View { self }
    public func textContentType(_ type: UITextContentType?) -> some View { self }
    public func textInputAutocapitalization(_ kind: TextInputAutocapitalization?) -> some View { self }
    public func autocorrectionDisabled(_ disable: Bool = true) -> some View { self }
    public func environmentObject<Object: ObservableObject>(_ object: Object) -> some View { self }
    public func task(
        @_inheritActorContext _ action: @escaping @Sendable () async -> Void
    ) -> some View { self }
    public func refreshable(action: @escaping @Sendable () async -> Void) -> some View { self }
}

// State.

@propertyWrapper
public struct Binding<Value> {
    public init(get: @escaping @Sendable () -> Value, set: @escaping @Sendable (Value) -> Void) {}
    public var wrappedValue: Value { get { stub() } nonmutating set {} }
}
@propertyWrapper
public struct State<Value> {
    public init(wrappedValue: Value) {}
    public var wrappedValue: Value { get { stub() } nonmutating set {} }
    public var projectedValue: Binding<Value> { stub() }
}
@MainActor
@propertyWrapper
public struct StateObject<Object: ObservableObject> {
    public nonisolated init(wrappedValue: @autoclosure @escaping () -> Object) {}
    public var wrappedValue: Object { stub() }
}
@MainActor
@propertyWrapper
public struct EnvironmentObject<Object: ObservableObject> {
    public nonisolated init() {}
    public var wrappedValue: Object { stub() }
}

// Apps.

@MainActor @preconcurrency
public protocol Scene {}
public struct WindowGroup<Content: View>: Scene { public init(@ViewBuilder content: () -> Content) {} }

@resultBuilder
public struct SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}

@MainActor @preconcurrency
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}
extension App { public static func main() {} }
