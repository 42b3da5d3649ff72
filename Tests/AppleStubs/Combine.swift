// swift-format-ignore-file
// Apple names these, and documents them. Shapes of the part of Combine that the SDK and Examples/Notes use;
// see README.md. Source: Apple's documentation of Combine.
public protocol Publisher<Output, Failure> {
    associatedtype Output
    associatedtype Failure: Error
}
public protocol Subscription {}
public enum Subscribers {
    public struct Demand {}
    @frozen public enum Completion<Failure: Error> { case finished, failure(Failure) }
}
public struct AnyPublisher<Output, Failure: Error>: Publisher {}
public final class PassthroughSubject<Output, Failure: Error>: Publisher {
    public init() {}
    public func send(_ input: Output) {}
    public func send(completion: Subscribers.Completion<Failure>) {}
}
public struct Deferred<DeferredPublisher: Publisher>: Publisher {
    public typealias Output = DeferredPublisher.Output
    public typealias Failure = DeferredPublisher.Failure
    public init(createPublisher: @escaping () -> DeferredPublisher) {}
}
public enum Publishers {
    public struct HandleEvents<Upstream: Publisher>: Publisher {
        public typealias Output = Upstream.Output
        public typealias Failure = Upstream.Failure
    }
}
extension Publisher {
    public func eraseToAnyPublisher() -> AnyPublisher<Output, Failure> { AnyPublisher() }
    public func handleEvents(
        receiveSubscription: ((any Subscription) -> Void)? = nil, receiveOutput: ((Output) -> Void)? = nil,
        receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)? = nil,
        receiveCancel: (() -> Void)? = nil,
        receiveRequest: ((Subscribers.Demand) -> Void)? = nil
    ) -> Publishers.HandleEvents<Self> { Publishers.HandleEvents() }
}
public protocol ObservableObject: AnyObject {}
@propertyWrapper
public struct Published<Value> {
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    public var wrappedValue: Value
}
