import Foundation

/// A user.
@MainActor
public struct User<T: Sendable>: Codable where T: Equatable {
    /// The name.
    let name: String
    private(set) var age = 0
    var full: String { get { name } set { } }
    static let shared = User<Int>(name: "x")

    init(name: String) async throws { self.name = name }

    // Greets.
    func greet(_ who: some Collection<String>) async throws -> String {
        if let who, case .some(let x) = Optional(1) { return "\(x)" }
        let value = if age > 3 { 1 } else { 2 }
        return #"raw"#
    }
    mutating func change() { func hidden() {} }
}

actor Counter { var n = 0; nonisolated func get() -> Int { 0 } }

enum Shape: String, CaseIterable {
    case circle, square(side: Int)
    indirect case tree(Shape)
    func area() -> Double { 0 }
}

protocol Drawable: AnyObject {
    associatedtype Canvas
    var size: Int { get }
    func draw(on c: any Canvas)
}

extension User: Drawable where T == Int {
    typealias Canvas = Int
    func draw(on c: Int) {}
}

class Box<each Item> { deinit {} }
typealias Handler = @Sendable (Int) async throws -> Void
func top<each T>(_ item: repeat each T) -> (repeat each T) { (repeat each item) }
let regex = /a+b/
#if DEBUG
func debug() {}
#endif
@attached(member) macro Observable() = #externalMacro(module: "M", type: "T")
