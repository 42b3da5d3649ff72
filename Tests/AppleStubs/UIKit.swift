// swift-format-ignore-file
// Apple names these, and documents them.
// Shapes of the part of UIKit that Examples/Notes uses; see README.md. Source: Apple's
// documentation of UIKit.

public enum UIUserInterfaceIdiom: Sendable { case unspecified, phone, pad, tv, carPlay, mac, vision }

@MainActor
public class UIDevice {
    private init() {}
    public class var current: UIDevice { UIDevice() }
    public var name: String { "" }
    public var userInterfaceIdiom: UIUserInterfaceIdiom { .unspecified }
}
