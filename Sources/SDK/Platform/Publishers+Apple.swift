#if canImport(Combine)
    import Combine

    extension CountersignClient {
        /// ``states`` for Combine: the current state first, then each change, on a thread of the client's.
        /// Ends when the client does.
        public var statePublisher: AnyPublisher<CountersignState, Never> {
            AsyncStreamPublisher.of { self.states }
        }

        /// ``events`` for Combine, from the subscription on.
        public var eventPublisher: AnyPublisher<CountersignEvent, Never> {
            AsyncStreamPublisher.of { self.events }
        }
    }

    /// One stream for each subscriber; a cancelled subscription releases it.
    private enum AsyncStreamPublisher {
        static func of<Value: Sendable>(
            _ stream: @escaping () -> AsyncStream<Value>
        ) -> AnyPublisher<Value, Never> {
            Deferred {
                let values = stream()
                let subject = PassthroughSubject<Value, Never>()
                let sender = Sender(subject)
                let task = Box<Task<Void, Never>>()
                return subject.handleEvents(
                    receiveSubscription: { _ in
                        task.value = Task.detached {
                            for await value in values { sender.send(value) }
                            sender.finish()
                        }
                    }, receiveCancel: { task.value?.cancel() })
            }.eraseToAnyPublisher()
        }

        /// Subjects lock by themselves, and are not marked as sendable.
        private final class Sender<Value: Sendable>: @unchecked Sendable {
            private let subject: PassthroughSubject<Value, Never>

            init(_ subject: PassthroughSubject<Value, Never>) { self.subject = subject }

            func send(_ value: Value) { subject.send(value) }
            func finish() { subject.send(completion: .finished) }
        }

        private final class Box<Value> {
            var value: Value?
        }
    }
#endif
