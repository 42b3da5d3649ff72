#if canImport(Security)
    import Foundation

    /// Passes the pieces of a body to URLSession, which reads from a blocking stream. A separate thread fills
    /// that stream, so that no thread of the task pool blocks.
    final class StreamedUpload: Sendable {
        private static let room = 65_536

        private let channel: UploadChannel
        private let producer: Task<Void, Never>
        private let more: DispatchSemaphore
        private let isOver = DispatchSemaphore(value: 0)

        /// The upload, and the stream that URLSession reads. `failed` receives the reason if the body cannot
        /// continue, and must cancel the request.
        static func begin(
            length: BodyLength, write: @escaping BodyWriter,
            onFailure failed: @escaping @Sendable (String) -> Void
        ) -> (upload: StreamedUpload, stream: InputStream?) {
            var input: InputStream?
            var output: OutputStream?
            Stream.getBoundStreams(withBufferSize: room, inputStream: &input, outputStream: &output)
            let upload = StreamedUpload(length: length, write: write)
            // From here on only the thread uses the stream.
            nonisolated(unsafe) let target = output
            Thread.detachNewThread { if let target { upload.fill(target, onFailure: failed) } }
            return (upload, input)
        }

        private init(length: BodyLength, write: @escaping BodyWriter) {
            let more = DispatchSemaphore(value: 0)
            let channel = UploadChannel(length) { more.signal() }
            self.more = more
            self.channel = channel
            producer = Task {
                do {
                    try await write { try await channel.push($0) }
                    channel.close(nil)
                } catch {
                    channel.close("\(error)")
                }
            }
        }

        /// Called when the request has ended in any way.
        func finish() {
            channel.close("the request is over")
            producer.cancel()
            isOver.signal()
            more.signal()
        }

        private func fill(_ output: OutputStream, onFailure failed: @Sendable (String) -> Void) {
            output.open()
            defer { output.close() }
            var bytes = [UInt8](repeating: 0, count: StreamedUpload.room)
            while true {
                switch bytes.withUnsafeMutableBytes({ channel.take(into: $0) }) {
                case .bytes(let count):
                    guard StreamedUpload.write(bytes[..<count], to: output) else { return }
                case .nothingYet: more.wait()
                case .end: return
                case .failed(let why):
                    failed(why)
                    // Closing the stream before the request is cancelled would end the body as if it were
                    // complete.
                    isOver.wait()
                    return
                }
            }
        }

        /// False if the reader has stopped.
        private static func write(_ bytes: ArraySlice<UInt8>, to output: OutputStream) -> Bool {
            bytes.withUnsafeBufferPointer { bytes in
                guard var next = bytes.baseAddress else { return true }
                let end = next + bytes.count
                while next < end {
                    let count = output.write(next, maxLength: end - next)
                    guard count > 0 else { return false }
                    next += count
                }
                return true
            }
        }
    }
#endif
