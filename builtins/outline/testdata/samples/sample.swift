import Foundation

/// A user.
public struct User<T: Codable>: Codable where T: Equatable {
    /// The name.
    let name: String
    private(set) var age = 0

    init(name: String) throws { self.name = name }

    // Greets.
    func greet(_ who: String) async throws -> String {
        func hidden() {}
        return "\(who)"
    }
}

actor Counter { var n = 0 }
enum Shape: String { case circle, square; func area() -> Double { 0 } }
protocol Drawable: AnyObject {
    associatedtype Canvas
    var size: Int { get }
    func draw(on c: Canvas)
}
extension User: Drawable where T == Int { typealias Canvas = Int }
class Box { deinit {} }
func top() -> Int { 0 }
