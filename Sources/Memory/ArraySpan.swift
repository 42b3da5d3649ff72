/// The standard library's own property is for iOS 26 and later, and this one takes its place wherever this
/// module is imported.
extension Array where Element: BitwiseCopyable {
    /// The elements, without a copy. An array of values without references has one native buffer, which stays
    /// where it is while the array is borrowed.
    @inlinable package var span: Span<Element> {
        @_lifetime(borrow self) borrowing get {
            let elements = withUnsafeBufferPointer { $0 }
            return _overrideLifetime(Span(_unsafeElements: elements), borrowing: self)
        }
    }
}
