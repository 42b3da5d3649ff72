// swift-format-ignore-file
import Foundation
